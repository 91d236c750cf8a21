// The admin port's own JSON, shown as tables. Whatever a caller or an engine wrote goes in as text, never as markup.
"use strict";

const EVERY_MS = 2000;
const TOKEN = "kinference-token";
const byId = (id) => document.getElementById(id);

function make(name, text, kind) {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  return element;
}

function table(heads, rows) {
  const whole = make("table"), head = whole.createTHead().insertRow(), body = whole.createTBody();
  for (const text of heads) head.append(make("th", text));
  for (const row of rows) {
    const line = body.insertRow();
    for (const cell of row) {
      const box = line.insertCell();
      if (cell instanceof Node) box.append(cell);
      else box.textContent = cell ?? "–";
      if (typeof cell === "number") box.className = "number";
    }
  }
  return whole;
}

const seconds = (value) => `${value.toFixed(value < 10 ? 1 : 0)} s`;
const workOf = (milliseconds) => seconds(milliseconds / 1000);

function waiting(lines) {
  if (!lines.length) return [make("p", "Nobody waits.", "quiet")];
  return lines.flatMap((line) => [
    make("p", `${line.destinations.join(", ")}: ${line.why}.`),
    table(
      ["class", "tenant", "requests", "longest wait", "work"],
      line.groups.map((one) => [
        one.qos, one.tenant || "(none)", one.requests, seconds(one.longest_s), workOf(one.work_ms),
      ]),
    ),
    table(
      ["bound for", "work that waits for it"],
      Object.entries(line.bound_ms).map(([name, work]) => [name, workOf(work)]),
    ),
  ]);
}

function stateOf(row) {
  if (row.draining) return make("span", row.requests ? "draining" : "drained", "bad");
  if (!row.ready) return make("span", "not ready", "bad");
  return row.circuit === "closed" ? "ready" : make("span", `${row.circuit}: ${row.circuit_reason}`, "bad");
}

function drainButton(row) {
  if (row.kind !== "pool") return "";
  const button = make("button", row.draining ? "end the drain" : "drain");
  button.type = "button";
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const body = JSON.stringify({ draining: !row.draining, pool: row.pool });
      await ask(`api/v1/endpoints/${encodeURIComponent(row.address)}`, { method: "PATCH", body });
    } catch (error) {
      byId("state").textContent = error.message;
    }
    await refresh();
  });
  return button;
}

function endpoints(rows) {
  if (!rows.length) return [make("p", "There is no destination.", "quiet")];
  const heads = ["destination", "state", "in flight", "waiting", "running", "KV cache", "prefix cache", "models", ""];
  const share = (ratio) => (ratio === null ? null : `${(100 * ratio).toFixed(0)}%`);
  return [table(heads, rows.map((row) => [
    row.address ? `${row.pool} ${row.address}` : row.pool, stateOf(row), row.requests, row.waiting, row.running,
    share(row.kv_usage_ratio), row.prefix_signal, row.models.slice(0, 5).join(", "), drainButton(row),
  ]))];
}

function discovery(rows) {
  if (!rows.length) return [make("p", "The endpoints of every pool are listed.", "quiet")];
  return [table(["pool", "source", "endpoints", "draining", "told", "error"], rows.map((row) => [
    row.pool, row.source, row.endpoints, row.draining,
    row.told_s_ago === null ? "never" : `${seconds(row.told_s_ago)} ago`,
    row.error ? make("span", row.error, "bad") : "",
  ]))];
}

function tenants(rows) {
  if (!rows.length) return [make("p", "None was active.", "quiet")];
  return [table(["tenant", "in flight", "requests left", "tokens left", "spent, USD"], rows.map((row) => [
    row.tenant, row.in_flight, row.requests_left, row.tokens_left, row.spent_usd,
  ]))];
}

function decisions(rows) {
  if (!rows.length) return [make("p", "None yet.", "quiet")];
  return [table(["at", "tenant", "model", "outcome", "destination", "why", "first token, ms"], rows.map((row) => [
    row.picked_at.slice(11, 23), row.tenant, row.model, row.outcome, row.destination, row.reason, row.observed_ttft_ms,
  ]))];
}

const QUERIES = { decisions: "?limit=20", tenants: "?limit=100" };
const SECTIONS = { waiting, endpoints, discovery, tenants, decisions };

async function ask(path, options = {}) {
  const headers = { accept: "application/json" };
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.authorization = `Bearer ${token}`;
  if (options.body) headers["content-type"] = "application/json";
  const answer = await fetch(path, { ...options, headers, cache: "no-store" });
  byId("credential").hidden = answer.status !== 401 && answer.status !== 403;
  const content = await answer.json();
  if (!answer.ok) throw new Error(content.error ? content.error.message : `HTTP ${answer.status}`);
  return content;
}

async function refresh() {
  try {
    for (const [name, show] of Object.entries(SECTIONS)) {
      const content = await ask(`api/v1/${name}${QUERIES[name] || ""}`);
      byId(name).replaceChildren(...show(content[name]));
      if (content.next) byId(name).append(make("p", "There are more.", "quiet"));
    }
    byId("state").textContent = `as of ${new Date().toLocaleTimeString()}`;
  } catch (error) {
    byId("state").textContent = error.message;
  }
}

async function follow() {
  if (!document.hidden) await refresh();
  setTimeout(follow, EVERY_MS);
}

byId("credential").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = event.target.elements.token;
  sessionStorage.setItem(TOKEN, field.value);
  field.value = "";
  refresh();
});
follow();
