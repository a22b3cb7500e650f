from __future__ import annotations
import json, os, pathlib, time, resource
import pytest, sqlalchemy as sa
import tests.unit.playbooks.test_watch as w
from tests.unit.playbooks.test_watch import Cloud
@pytest.mark.parametrize("n", [50, 200])
def test_scale(tmp_path, seeded, monkeypatch, n) -> None:
    names=tuple(f"hv{i}" for i in range(1,n+1))
    monkeypatch.setattr(w, "NAMES", names)
    c=Cloud(tmp_path, seeded)
    inv=c.elsewhere/"hosts.ini"
    s=inv.read_text().replace("hv3\nhv4\n","\n".join(names[2:])+"\n")
    inv.write_text(s)
    c.dead("hv2")
    for forks in (5, 20, 50):
        r0=resource.getrusage(resource.RUSAGE_CHILDREN); t=time.time()
        out=c.play("watch.yml","-e",json.dumps({"novalite_watch_settings":{"missed":1}}),"--forks",str(forks))
        d=time.time()-t; r=resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu=r.ru_utime+r.ru_stime-r0.ru_utime-r0.ru_stime
        row=c.row("hv1"); row2=c.row("hv2")
        print("N",n,"forks",forks,"rc",out.returncode,"wall",round(d,1),"cpu",round(cpu,1),"hv1 heard",row.heard,"hv2",row2.state,row2.missed, "decided" , [l for l in out.stdout.splitlines() if "hv2" in l][-2:], "ssh calls", flush=True)
