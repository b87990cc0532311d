// Sorts a table by the column whose head is clicked.
document.querySelectorAll("table.sortable").forEach(function (table) {
  table.querySelectorAll("th").forEach(function (head, column) {
    var up = true;
    head.querySelector("button").addEventListener("click", function () {
      var body = table.tBodies[0], value = function (row) { var cell = row.cells[column], v = cell.dataset.v; return v === undefined ? cell.textContent : v === "inf" ? Infinity : v === "-inf" ? -Infinity : parseFloat(v); };
      var rows = Array.from(body.rows).sort(function (a, b) { var x = value(a), y = value(b); return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1); });
      up = !up; rows.forEach(function (row) { body.appendChild(row); });
    });
  });
});
