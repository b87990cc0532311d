// Plays a motion in MeshCat's viewer at real speed: data come from the page, nothing from the network.
"use strict";
(() => {
const $ = id => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));
const floats = text => new Float32Array(bytes(text).buffer);

let viewer;
try {
    viewer = new MeshCat.Viewer($("meshcat-pane"));
} catch (error) {
    $("trouble").hidden = false;
    $("trouble").textContent = "This page needs WebGL, which this browser does not offer: " + error.message;
    throw error;
}
viewer.renderer.outputEncoding = 3001;  // sRGB: lights and colours are linear
viewer.renderer.setPixelRatio(Math.min(window.devicePixelRatio || 1, 2));
for (const command of data.commands) viewer.handle_command_bytearray(bytes(command));

const node = path => viewer.scene_tree.find(path.split("/").filter(part => part)).object;
const content = path => node(path + "/<object>").children[0];
const upright = p => [p[0], p[2], -p[1]];  // the viewer's camera and lights live in a world whose y axis points up

for (const name of ["stage/key light", "stage/fill light"]) {
    const light = content(name);
    light.shadow.normalBias = 0.012 * data.camera.size;
    light.target.position.set(...upright(data.camera.centre));
    light.target.updateMatrixWorld();
}
node("").traverse(item => {
    // mesh files may come without normals, or with zeros; what has none is black
    const normal = item.isMesh && item.geometry.attributes.normal;
    if (item.isMesh && item.material.isMeshBasicMaterial !== true && (!normal || normal.array.every(value => value === 0)))
        item.geometry.computeVertexNormals();
    // colours that a mesh file brought along are in sRGB
    if (item.name === "own materials")
        for (const material of [item.material].flat()) if (material.color) material.color.convertSRGBToLinear();
});

// ---- the camera: as near as possible with every point of the motion in the picture
const camera = viewer.camera;
camera.fov = 30;
camera.near = 0.02 * data.camera.size;
camera.far = 80 * data.camera.size;
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
function frame_scene() {
    const back = upright(data.camera.direction);
    let right = cross([0, 1, 0], back);
    const length = Math.hypot(...right);
    right = right.map(value => value / length);
    const up = cross(back, right);
    const width = window.innerWidth, height = window.innerHeight;
    // the bar at the bottom and the card on the left cover part of the picture
    const card = width > 700 ? 0.45 * $("about").offsetWidth : 0, low = 78, high = 20;
    const tan_v = Math.tan(camera.fov * Math.PI / 360) * 0.96, tan_h = tan_v * width / height;
    const free_h = tan_h * (1 - card / width), free_v = tan_v * (1 - (low + high) / height);
    const points = data.camera.points.map(p => { const q = upright(p); return [dot(q, right), dot(q, up), dot(q, back)]; });
    let x = 0, y = 0, away = 0;
    const centre = upright(data.camera.centre);
    [x, y] = [dot(centre, right), dot(centre, up)];
    const base = dot(centre, back);
    for (let round = 0; round < 12; round++) {  // shift to the middle of the picture, then as far away as needed
        const wide = [Infinity, -Infinity], tall = [Infinity, -Infinity];
        away = 0;
        for (const p of points)
            away = Math.max(away, Math.abs(p[0] - x) / free_h + p[2] - base, Math.abs(p[1] - y) / free_v + p[2] - base);
        for (const p of points) {
            const depth = away - (p[2] - base);
            const h = (p[0] - x) / depth, v = (p[1] - y) / depth;
            wide[0] = Math.min(wide[0], h); wide[1] = Math.max(wide[1], h);
            tall[0] = Math.min(tall[0], v); tall[1] = Math.max(tall[1], v);
        }
        x += away * (wide[0] + wide[1]) / 2;
        y += away * (tall[0] + tall[1]) / 2;
    }
    const target = [0, 1, 2].map(k => right[k] * (x - away * tan_h * card / width)
        + up[k] * (y - away * tan_v * (low - high) / height) + back[k] * base);
    viewer.controls.target.set(...target);
    camera.position.set(...target.map((value, k) => value + away * back[k]));
    viewer.controls.update();
    viewer.set_dirty();
}
let moved = false;
viewer.controls.addEventListener("start", () => { moved = true; });
window.addEventListener("resize", () => { if (!moved) frame_scene(); });

// ---- what moves
const movers = data.movers.map(paths => paths.map(node));
const poses = floats(data.poses), values = floats(data.values);
const last = data.frames - 1, count = movers.length, joints = data.joints.length;
const tubes = data.trails.map(trail => {
    const drawn = content(trail.path);
    const faint = drawn.clone();
    faint.geometry = drawn.geometry.clone();
    faint.material = drawn.material.clone();
    faint.material.opacity = 0.28;
    faint.material.depthWrite = false;
    node(trail.path).add(faint);
    return {drawn, step: trail.step, per_step: trail.per_step};
});
const cells = data.joints.map(joint => {
    const row = $("joints").insertRow();
    const name = row.insertCell();
    name.textContent = name.title = joint.name;
    return row.insertCell();
});

// ---- the torque error of a result: links take its colour
const wrong = data.errors && {...data.errors, table: floats(data.errors.table), links: data.joints.map((_, j) => {
    const found = [];
    movers[j][0].traverse(item => { if (item.isMesh) found.push(...[item.material].flat().filter(known => known.color)); });
    return found;
})};
function show_errors(frame) {
    const a = Math.min(Math.round(frame), last) * joints, stops = wrong.colours.length - 1;
    for (let j = 0; j < joints; j++) {
        const share = Math.min(wrong.table[a + j] / wrong.largest, 1), exact = share * stops;
        const k = Math.min(Math.floor(exact), stops - 1), f = exact - k;
        const colour = wrong.colours[k].map((value, i) => value * (1 - f) + wrong.colours[k + 1][i] * f);
        for (const material of wrong.links[j]) material.color.setRGB(...colour).convertSRGBToLinear();
        cells[j].title = `torque error ${(100 * wrong.table[a + j]).toFixed(1)} % of the usual torque`;
        cells[j].style.color = share > 0.5 ? wrong.css[stops] : "";
    }
}

// ---- the line between the nearest things, and its length
const near = data.nearest && {...data.nearest, table: floats(data.nearest.table), rod: content("/nearest"), node: node("/nearest")};
function write_distance() {
    const label = $("nearest");
    const spot = near.rod.getWorldPosition(near.rod.up.clone()).project(camera);
    label.hidden = !near.node.visible || spot.z > 1;
    label.style.left = `${(spot.x + 1) / 2 * window.innerWidth}px`;
    label.style.top = `${(1 - spot.y) / 2 * window.innerHeight}px`;
}
function show_nearest(frame) {
    const moment = Math.min(Math.round(frame / near.step), near.table.length / 8 - 1);
    const [x, y, z, u, v, w, distance, which] = near.table.subarray(8 * moment, 8 * moment + 8);
    const rod = near.rod, length = Math.hypot(u - x, v - y, w - z);
    const colour = distance < near.required[which] ? "#c62828" : "#1b7f4d";
    rod.position.set((x + u) / 2, (y + v) / 2, (z + w) / 2);
    rod.scale.set(1, Math.max(length, 1e-6), 1);
    const along = rod.up.clone().set(u - x, v - y, w - z).normalize();
    if (length > 0) rod.quaternion.setFromUnitVectors(rod.up.clone().set(0, 1, 0), along);
    rod.material.color.set(colour).convertSRGBToLinear();
    $("nearest").style.setProperty("--colour", colour);
    $("nearest").textContent = `${near.names[which]}: ${(1000 * distance).toFixed(distance < 0.1 ? 1 : 0)} mm`;
}

function show(time) {
    const exact = Math.min(Math.max(time * data.rate, 0), last), k = Math.min(Math.floor(exact), Math.max(last - 1, 0)), f = exact - k;
    for (let m = 0; m < count; m++) {
        const a = 7 * (k * count + m), b = last ? a + 7 * count : a;
        const mix = (i, sign) => poses[a + i] * (1 - f) + sign * poses[b + i] * f;
        let same = 0;
        for (let i = 3; i < 7; i++) same += poses[a + i] * poses[b + i];
        const sign = same < 0 ? -1 : 1;
        for (const object of movers[m]) {
            object.position.set(mix(0, 1), mix(1, 1), mix(2, 1));
            object.quaternion.set(mix(3, sign), mix(4, sign), mix(5, sign), mix(6, sign)).normalize();
        }
    }
    for (const tube of tubes) tube.drawn.geometry.setDrawRange(0, Math.round(exact / tube.step) * tube.per_step);
    data.joints.forEach((joint, j) => {
        const a = k * joints + j, value = last ? values[a] * (1 - f) + values[a + joints] * f : values[a];
        const text = (joint.factor * value).toFixed(1) + joint.unit;
        if (cells[j].textContent !== text) cells[j].textContent = text;
    });
    if (near) show_nearest(Math.min(exact, last));
    if (wrong) show_errors(exact);
    $("scrub").value = time;
    $("clock").innerHTML = `${time.toFixed(2)} <span>/ ${data.duration.toFixed(2)} s</span>`;
    viewer.set_dirty();
}

// ---- the clock: real time, times the chosen pace
const ICONS = {play: '<svg viewBox="0 0 16 16"><path d="M3.5 1.5v13l11-6.5z"/></svg>',
               pause: '<svg viewBox="0 0 16 16"><path d="M3 1.5h3.6v13H3zM9.4 1.5H13v13H9.4z"/></svg>'};
let time = 0, playing = true, before = null, rest = 0;
const start = /[#&]t=([\d.]+)/.exec(location.hash);  // …html#t=2.5 opens at that moment, paused
if (start) { time = Math.min(parseFloat(start[1]) || 0, data.duration); playing = false; }
function set_playing(on) {
    playing = on;
    before = null;
    if (on && time >= data.duration) time = 0;
    $("play").innerHTML = on ? ICONS.pause : ICONS.play;
}
function tick(now) {
    requestAnimationFrame(tick);
    if (near) write_distance();  // the camera may have moved
    if (!playing) return;
    const passed = before === null ? 0 : (now - before) / 1000;
    before = now;
    if (time >= data.duration) {  // a short rest at the end, then again
        rest += passed;
        if (rest > 0.7) { time = 0; rest = 0; }
    } else {
        time = Math.min(time + passed * parseFloat($("pace").value), data.duration);
    }
    show(time);
}
$("scrub").max = data.duration;
$("scrub").addEventListener("input", () => { set_playing(false); time = parseFloat($("scrub").value); show(time); });
$("play").addEventListener("click", () => set_playing(!playing));
window.addEventListener("keydown", event => {
    if (event.target.tagName === "INPUT" && event.target.type === "text") return;
    const jump = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (event.key === " ") { event.preventDefault(); set_playing(!playing); }
    else if (event.key === "Home") { time = 0; show(time); }
    else if (jump) {
        event.preventDefault();
        set_playing(false);
        time = Math.min(Math.max(time + jump * (event.shiftKey ? 1 : 1 / data.rate), 0), data.duration);
        show(time);
    }
});

// ---- words and switches
$("about").querySelector("h1").textContent = data.title;
$("about").querySelector("p").textContent = data.subtitle;
function add_scale(words, colours, highest) {
    const bar = document.createElement("div"), ends = document.createElement("div"), title = document.createElement("div");
    title.textContent = words;
    bar.className = "bar";
    bar.style.background = `linear-gradient(90deg, ${colours.join(",")})`;
    ends.className = "ends";
    ends.innerHTML = `<span>0</span><span>${highest}</span>`;
    $("legend").append(title, bar, ends);
}
if (data.speed) add_scale("speed of the tip", data.speed.colours, `${data.speed.highest} m/s`);
if (wrong) add_scale("torque error of the joint", wrong.css, `${(100 * wrong.largest).toFixed(0)} % of its usual torque`);
for (const entry of data.legend) {
    const line = document.createElement("div");
    line.className = "robot";
    line.style.setProperty("--colour", entry.colour);
    line.textContent = entry.text;
    $("legend").append(line);
}
if (!$("legend").children.length) $("legend").hidden = true;
const solid = [];
for (const path of data.robots) node(path).traverse(item => {
    for (const material of item.isMesh ? [item.material].flat() : [])
        if (!solid.some(known => known.material === material))
            solid.push({material, transparent: material.transparent, opacity: material.opacity, depthWrite: material.depthWrite});
});
for (const layer of data.layers) {
    const label = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox";
    box.checked = layer.on;
    const apply = () => {
        for (const path of layer.paths) node(path).visible = box.checked;
        if (layer.fades_robot) for (const {material, transparent, opacity, depthWrite} of solid) {
            Object.assign(material, box.checked ? {transparent: true, opacity: 0.22 * opacity, depthWrite: false}
                                                : {transparent, opacity, depthWrite});
            material.needsUpdate = true;
        }
        viewer.set_dirty();
    };
    box.addEventListener("change", apply);
    label.append(box, layer.label);
    label.title = layer.hint;
    $("bar").append(label);
    apply();
}

set_playing(playing);
frame_scene();
show(time);
requestAnimationFrame(tick);
})();
