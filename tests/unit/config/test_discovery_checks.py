import pytest

from kinference.config.load import parse
from kinference.config.problems import InvalidConfig

PORTS = "target_ports: [8000]"
MANY_LABELS = ", ".join(f"l{n}: v" for n in range(65))


@pytest.mark.parametrize(
    ("discovery", "told"),
    [
        ("{}", r"pools\[0\]\.discovery: needs exactly one of dns and kubernetes; split the pool"),
        (f"{{dns: {{name: a}}, kubernetes: {{service: s, {PORTS}}}}}", "needs exactly one of dns and kubernetes"),
        ("{dns: {name: 'http:'}}", r"dns\.name: is no host name; write SERVICE\.NAMESPACE\.svc"),
        ("{dns: {name: a..b}}", "is no host name"),
        ("{dns: {name: a, port: 0}}", r"dns\.port: is no port"),
        ("{dns: {name: a, port: 65536}}", r"dns\.port: is no port"),
        ("{dns: {name: a, interval: 500ms}}", r"dns\.interval: must be 1s to 1h; leave it out for 10s"),
        ("{dns: {name: a, interval: 2h}}", r"dns\.interval: must be 1s to 1h"),
        ("{dns: {name: a, server: 'dns:53'}}", r"dns\.server: needs an IP address and a port; write 10\.96\.0\.10:53"),
        ("{dns: {name: a, server: '10.0.0.1:0'}}", r"dns\.server: needs an IP address and a port"),
        ("{dns: {nam: a}}", "did you mean 'name'"),
        ("{kubernetes: {}}", "needs exactly one of match_labels, service and inference_pool; write match_labels"),
        (f"{{kubernetes: {{service: s, match_labels: {{a: b}}, {PORTS}}}}}", "needs exactly one of match_labels"),
        ("{kubernetes: {service: s}}", r"target_ports: none; list 1 to 8 ports"),
        ("{kubernetes: {service: s, target_ports: [1, 2, 3, 4, 5, 6, 7, 8, 9]}}", "target_ports: over 8"),
        ("{kubernetes: {service: s, target_ports: [1, 1]}}", "target_ports: something is no port, or twice there"),
        ("{kubernetes: {service: s, target_ports: [70000]}}", "target_ports: something is no port"),
        (f"{{kubernetes: {{inference_pool: p, {PORTS}}}}}", "target_ports: an InferencePool brings its own; leave"),
        (f"{{kubernetes: {{service: Engines, {PORTS}}}}}", r"kubernetes\.service: is no name of an object"),
        (f"{{kubernetes: {{service: 's?x=1', {PORTS}}}}}", r"kubernetes\.service: is no name of an object"),
        (f"{{kubernetes: {{service: s, namespace: '..', {PORTS}}}}}", r"kubernetes\.namespace: is no name"),
        (
            f"{{kubernetes: {{match_labels: {{app: 'a,b=c'}}, {PORTS}}}}}",
            "match_labels: 'app' is no label with a value",
        ),
        (f"{{kubernetes: {{match_labels: {{'a b': c}}, {PORTS}}}}}", "match_labels: 'a b' is no label with a value"),
        (f"{{kubernetes: {{match_labels: {{{MANY_LABELS}}}, {PORTS}}}}}", "match_labels: over 64 labels"),
        (f"{{kubernetes: {{service: s, api: 'http://h/x', {PORTS}}}}}", r"kubernetes\.api: has a path"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_way_out(discovery: str, told: str) -> None:
    with pytest.raises(InvalidConfig, match=told):
        parse(f"pools: [{{name: p, discovery: {discovery}}}]")


def test_a_pool_lists_its_endpoints_or_has_them_discovered() -> None:
    with pytest.raises(InvalidConfig, match=r"discovery: the pool lists endpoints, too; keep one"):
        parse("pools: [{name: p, endpoints: ['http://h:1'], discovery: {dns: {name: a}}}]")
    with pytest.raises(InvalidConfig, match=r"endpoints: no endpoint; list at least one URL, or write discovery"):
        parse("pools: [{name: p}]")


@pytest.mark.parametrize(
    "discovery",
    [
        "{dns: {name: _http._tcp.engines.models.svc.cluster.local.}}",
        f"{{kubernetes: {{match_labels: {{app.kubernetes.io/name: vLLM_1.2, empty: ''}}, {PORTS}}}}}",
        "{kubernetes: {inference_pool: chat.v2, namespace: ml}}",
    ],
)
def test_what_kubernetes_and_dns_take_is_taken(discovery: str) -> None:
    assert parse(f"pools: [{{name: p, discovery: {discovery}}}]").pools[0].discovery is not None
