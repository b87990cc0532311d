"""No file that another file names is opened outside of the folders that the user has given; every opening is audited."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import done, run
from test_viz import box_stl, mesh_robot

from urdf_ident import expand_logs, read_world
from urdf_ident.errors import LogError, ProjectError
from urdf_ident.files.read_write import allowed
from urdf_ident.logs.columns.layout import LogLayout
from urdf_ident.logs.formats.variables import open_hdf5
from urdf_ident.model.geometry import robot_shapes
from urdf_ident.model.meshes import find_mesh, mesh_box, packages_in

PACKAGE = Path(__file__).parents[1] / "urdf_ident"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A mesh of somebody else: two folders above the URDF, in no package."""
    path = tmp_path / "private" / "part.stl"
    path.parent.mkdir()
    path.write_bytes(box_stl(0.3))
    return path


def attack(how: str, secret: Path) -> str:
    """The name of the secret mesh in a URDF in ``work/arm`` beside the folder of the secret."""
    return {
        "file": f"file://{secret}",
        "absolute": str(secret),
        "above": "../../private/part.stl",
        "inside and out": "meshes/../../../private/part.stl",
        "package above": "package://../../private/part.stl",
        "folder as package": "package://private/part.stl",
        "out of a package": "package://described/../../private/part.stl",
        "encoded": "package://described/%2e%2e/%2e%2e/private/part.stl",
        "model": "model://private/part.stl",
        "root as package": f"package:///{secret}",
        "link": "link.stl",
        "link to a folder": "folder/part.stl",
    }[how]


ATTACKS = (
    *("file", "absolute", "above", "inside and out", "package above", "folder as package", "out of a package", "encoded"),
    *("model", "root as package", "link", "link to a folder"),
)


@pytest.mark.parametrize("how", ATTACKS)
def test_a_mesh_elsewhere_is_neither_read_nor_embedded(tmp_path: Path, secret: Path, how: str) -> None:
    folder = tmp_path / "work" / "arm"
    for name in ("meshes", "described"):
        (folder / name).mkdir(parents=True)
    (folder / "described" / "package.xml").write_text("<package/>")
    (folder / "link.stl").symlink_to(secret)
    (folder / "folder").symlink_to(secret.parent)
    robot = mesh_robot(folder, attack(how, secret))
    shapes, notes = robot_shapes(robot)
    assert all(shape.kind != "mesh" for shape in shapes)
    assert "--package" in notes[0]
    world = folder / "world.yaml"
    world.write_text(f"objects: {{press: {{mesh: '{attack(how, secret)}'}}}}\n")
    with pytest.raises(ProjectError, match="cannot be read"):
        read_world(world)


def test_what_the_user_names_is_read(tmp_path: Path, secret: Path) -> None:
    folder = tmp_path / "work" / "arm"
    folder.mkdir(parents=True)
    urdf = folder / "robot.urdf"
    before = os.environ.get("ROS_PACKAGE_PATH")
    for how in ("file", "above", "folder as package", "model"):
        assert find_mesh(attack(how, secret), urdf) is None
        for package in (secret.parent, secret.parents[1]):
            with packages_in([package]):
                assert find_mesh(attack(how, secret), urdf) == secret.resolve()
    assert os.environ.get("ROS_PACKAGE_PATH") == before
    (secret.parent / "package.xml").write_text("<package/>")
    assert find_mesh("package://private/part.stl", urdf) == secret.resolve()
    installed = tmp_path / "install" / "share" / "private"  # as `colcon build --symlink-install` lays packages out
    installed.mkdir(parents=True)
    for name in ("package.xml", "part.stl"):
        (installed / name).symlink_to(secret.parent / name)
    assert find_mesh("package://private/part.stl", installed / "robot.urdf") == secret.resolve()


def test_the_option_package_lets_a_command_read_meshes(tmp_path: Path, secret: Path) -> None:
    folder = tmp_path / "work" / "arm"
    robot = mesh_robot(folder, "../../private/part.stl")
    motion = folder / "motion.csv"
    motion.write_text("t,q_j\n" + "".join(f"{0.1 * k:.1f},{0.1 * np.sin(k):.6f}\n" for k in range(30)))
    page = folder / "page.html"
    arguments = ("play", robot.path, str(motion), "--html", str(page))
    done(*arguments)
    assert "capsules stand in" in run(*arguments).stdout
    result = done(*arguments, "--package", str(secret.parent))
    assert "capsules stand in" not in result
    result = run(*arguments, "--package", str(tmp_path / "nowhere"))
    assert result.returncode == 2
    assert "--package" in result.stderr


def test_the_material_file_of_a_mesh_is_not_opened(tmp_path: Path) -> None:
    """A pipe that nothing writes to stops whoever opens it."""
    pipe = tmp_path / "pipe.mtl"
    os.mkfifo(pipe)
    faces = "v 0 0 0\nv 1 0 0\nv 0 2 0\nv 0 0 3\nf 1 2 3\nf 1 3 4\nf 1 2 4\n"
    for k, words in enumerate((f"mtllib {pipe}\n", "mtllib pipe.mtl\n", "mtl\\\nlib pipe.mtl\n", "v 0 0 0\fmtllib pipe.mtl\n")):
        (tmp_path / f"{k}.obj").write_text(faces + words + faces)
    code = (
        "import sys; from pathlib import Path; from urdf_ident.model.meshes import mesh_box;"
        "print([mesh_box(Path(p)).tolist() for p in sys.argv[1:]])"
    )
    paths = [str(tmp_path / f"{k}.obj") for k in range(4)]
    result = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == str([[[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]]] * 4)
    (tmp_path / "large.stl").write_bytes(b"")
    os.truncate(tmp_path / "large.stl", 2**31)
    assert mesh_box(tmp_path / "large.stl") is None


def test_soft_links_of_hdf5_do_not_lead_through_links_to_other_files(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    t = np.arange(50) / 50.0
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["group/tau"] = np.full(50, 7.0)
    with h5py.File(tmp_path / "run.h5", "w") as file:
        file["run/t"], file["run/q"] = t, np.sin(t)
        file["out"] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "/group")
        file["run/tau"] = h5py.SoftLink("/out/tau")
        file["run/tau2"] = h5py.SoftLink("hop/tau")
        file["run/hop"] = h5py.SoftLink("/again")
        file["again"] = h5py.SoftLink("./out")
        file["run/v"] = h5py.SoftLink("../run/q")
        file["run/a"] = h5py.SoftLink("./q")
        file["circle"] = h5py.SoftLink("/circle")
    table = open_hdf5(tmp_path / "run.h5")
    assert not any("tau" in name for name in table.names)
    assert all(not (column == 7.0).any() for column in table.columns)
    assert "run/tau" in table.notes[0]
    os.rename(tmp_path / "secret.h5", tmp_path / "gone.h5")
    os.mkfifo(tmp_path / "secret.h5")  # opening it would not end
    assert open_hdf5(tmp_path / "run.h5").names == table.names


def test_files_of_a_split_log_lie_where_the_user_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, secret = tmp_path / "home", tmp_path / "secret"
    for folder in (home / "raw", secret):
        folder.mkdir(parents=True)
    for path in (home / "run1_q.csv", home / "raw/run1_tau.csv", secret / "run1_tau.csv"):
        path.write_text("0,1\n")
    (home / "link").symlink_to(secret)
    monkeypatch.chdir(home)
    for pattern in (f"{secret}/*_tau.csv", "../secret/*_tau.csv", "link/*_tau.csv"):
        with pytest.raises(LogError, match="lies elsewhere"):
            expand_logs(["run1"], LogLayout(files={"position": "*_q.csv", "effort": pattern}))
    (log,) = expand_logs(["run1"], LogLayout(files={"position": "*_q.csv", "effort": "raw/*_tau.csv"}))
    assert dict(log.files)["effort"] == "raw/run1_tau.csv"


def test_links_of_a_data_set_lead_into_its_cache_only(tmp_path: Path) -> None:
    lerobot = pytest.importorskip("urdf_ident.logs.formats.lerobot")
    pq, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    (tmp_path / "blobs").mkdir()
    root = tmp_path / "snapshots" / "abc"
    for name in ("meta", "data/chunk-000"):
        (root / name).mkdir(parents=True)
    table = pa.table({"timestamp": [0.0, 0.1], "observation.state": [[1.0], [2.0]]})
    features = '{"observation.state": {"dtype": "float32", "shape": [1], "names": ["j"]}}'
    for blob, content in {"info": f'{{"total_episodes": 1, "features": {features}}}'.encode(), "rows": b""}.items():
        (tmp_path / "blobs" / blob).write_bytes(content)
    pq.write_table(table, tmp_path / "blobs" / "rows")
    (root / "meta/info.json").symlink_to("../../../blobs/info")
    (root / "data/chunk-000/episode_000000.parquet").symlink_to("../../../../blobs/rows")
    assert "t" in lerobot.open_episode(root, 0).names
    pq.write_table(table, tmp_path / "secret")
    (root / "data/chunk-000/episode_000000.parquet").unlink()
    (root / "data/chunk-000/episode_000000.parquet").symlink_to(tmp_path / "secret")
    with pytest.raises(LogError, match="leads out of it"):
        lerobot.open_episode(root, 0)


def test_a_bag_whose_storage_is_a_link_elsewhere_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("rosbags")
    from urdf_ident.logs.formats.bags import open_bag

    (tmp_path / "bag").mkdir()
    (tmp_path / "secret.db3").write_bytes(b"SQLite format 3\0")
    (tmp_path / "bag" / "run.db3").symlink_to(tmp_path / "secret.db3")
    (tmp_path / "bag" / "metadata.yaml").write_text("rosbag2_bagfile_information: {}\n")
    with pytest.raises(LogError, match="leads out of its folder"):
        open_bag(tmp_path / "bag", mesh_robot(tmp_path, "a.stl"))


def test_allowed_follows_links_and_takes_regular_files_only(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "file").write_text("")
    os.mkfifo(inside / "pipe")
    (inside / "circle").symlink_to("circle")
    (inside / "away").symlink_to(outside / "file")
    (outside / "back").symlink_to(inside / "file")
    assert allowed(inside / "file", [inside]) == (inside / "file").resolve()
    assert allowed(outside / "back", [inside]) == (inside / "file").resolve()
    for name in ("pipe", "circle", "away", "../out/file", "missing", "", ".", "nu\0ll", "x" * 5000):
        assert allowed(inside / name, [inside]) is None


#: Calls that open a file or an address, by the last part of their name.
OPENING = {
    *("open", "read_bytes", "read_text", "read_stream", "File", "ParquetFile", "OSFile", "read_table", "read_metadata"),
    *("read_csv", "load", "loadtxt", "genfromtxt", "fromfile", "memmap", "loadmat", "ZipFile", "DirectoryReader", "McapReader"),
    *("Sqlite3Reader", "Reader1", "from_xml_path", "from_xml_file", "open_local", "open_memmap", "urlopen"),
    *("url_to_fs", "get_file", "create_connection", "from_file", "process_file"),
}
#: Module and function → why what it opens may be opened.
GIVEN = "a path of the command line or of a caller, who has asked `allowed`"
ASKED = "asks `allowed`"
OWN = "a file of this package or of a library, or one that this process has written"
NONE = "opens no file: text, bytes or a stream at hand"
NETWORK = "an address of the command line"
BEFORE = "files of a model that `compiled_mjcf` has read, which asks `allowed`"
PROGRAM = "a xacro file is a program that its package runs (SECURITY.md)"
PROJECT = "the URDF that a result names: it is compared by its hash and not shown"
AUDITED = {
    place: why
    for why, places in {
        GIVEN: """
            cli/check.py:check cli/application.py:open_result export/mjcf.py:readable_mesh files/fileset.py:_hold
            files/fileset.py:_sync files/read_write.py:_open_without_waiting files/read_write.py:read_bytes
            files/read_write.py:read_stream files/read_write.py:read_text logs/formats/choice.py:_kind
            logs/formats/variables.py:open_matlab logs/formats/parquet.py:_batches
            logs/formats/text.py:line_blocks logs/formats/variables.py:open_hdf5
            logs/formats/variables.py:open_numpy logs/tables.py:file_hash model/meshes.py:load_mesh
            model/description.py:read_description motion/collision/world.py:read_world
            pipeline/simulate.py:true_plant
            project.py:load_project result/identification.py:load simulation/truth.py:read_truth viz/scene.py:add_shape
            viz/scene.py:_with_own_images.inlined
        """,
        OWN: """
            cli/application.py:_Printed._drop cli/application.py:main pipeline/fleet.py:fleet
            export/on_robot.py:_program provenance.py:computing
            report/page.py:_text result/scores.py:read_series viz/page.py:_assemble
        """,
        BEFORE: "export/mjcf_patch.py:_files_of result/write.py:write_mjcf",
        NONE: """
            files/documents.py:parse_yaml
            logs/formats/text.py:TextTable._parsed logs/formats/variables.py:_member viz/player.py:_open
        """,
        ASKED: """
            logs/columns/fields.py:joint_ranges logs/formats/bags.py:_opened logs/formats/lerobot.py:_info
            logs/formats/lerobot.py:_episodes_of_index model/description.py:_refuse_files_elsewhere
            model/description.py:compiled_mjcf
        """,
        NETWORK: "logs/remote.py:_reached logs/remote.py:local_files",
        PROGRAM: "model/description.py:_expanded",
        PROJECT: "result/write.py:check_source",
    }.items()
    for place in places.split()
}
#: Folders and modules whose openings are of their own temporary files or of the memory of this process.
APART = ("faults/",)


def openings(tree: ast.AST, function: str = "") -> list[str]:
    found = []
    for node in ast.iter_child_nodes(tree):
        inner = f"{function}.{node.name}".lstrip(".") if isinstance(node, ast.FunctionDef | ast.ClassDef) else function
        called = node.func if isinstance(node, ast.Call) else None
        name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
        found += [function] * (name in OPENING) + openings(node, inner)
    return found


def test_every_opening_of_a_file_is_audited() -> None:
    """Whoever opens a file in a new place says here where its path comes from."""
    found = set()
    asking = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        module, source = path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8")
        if not module.startswith(APART):
            found |= {f"{module}:{function}" for function in openings(ast.parse(source))}
            asking |= {module} if " allowed(" in source else set()
    assert not found - set(AUDITED), "say where the paths of these come from"
    assert {place.split(":")[0] for place, why in AUDITED.items() if why is ASKED} <= asking
    assert {"model/meshes.py", "logs/sources.py", "logs/formats/lerobot.py", "logs/formats/bags.py"} <= asking


def test_the_walk_sees_an_opening(tmp_path: Path) -> None:
    source = "class A:\n  def f(self, p):\n    with open(p) as s: pass\ndef g(p): return [q.read_bytes() for q in p]\n"
    assert openings(ast.parse(source)) == ["A.f", "g"]
