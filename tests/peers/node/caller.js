// A caller of the Picker service on grpc-js: whole requests, many at once, and every refusal that a caller can meet.
// Usage: node caller.js HOST:PORT PROTO_FOLDER MODEL

'use strict';

const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const [target, protos, model] = process.argv.slice(2);
const definition = loader.loadSync('kinference/v1/picker.proto', { includeDirs: [protos], longs: String, enums: String, defaults: true });
const { Picker } = grpc.loadPackageDefinition(definition).kinference.v1;
const client = new Picker(target, grpc.credentials.createInsecure());

const MIB = 1024 * 1024;
const IN_FLIGHT = 50;

function body(number, padding) {
  const text = `request ${number}.`;
  return Buffer.from(JSON.stringify({ model, messages: [{ role: 'user', content: text }], metadata: { padding: 'x'.repeat(padding) } }));
}

function unary(method, request) {
  return new Promise((resolve, reject) => {
    client[method](request, (error, response) => (error ? reject(error) : resolve(response)));
  });
}

function push(chunks, declared) {
  return new Promise((resolve, reject) => {
    const metadata = new grpc.Metadata();
    if (declared !== undefined) metadata.set('kinference-declared-length', String(declared));
    const call = client.PushBody(metadata, (error, response) => (error ? reject(error) : resolve(response)));
    for (const chunk of chunks) call.write({ chunk });
    call.end();
  });
}

function pull(responseId) {
  return new Promise((resolve, reject) => {
    const chunks = [];
    const call = client.PullBody({ responseId });
    call.on('data', (message) => chunks.push(message.chunk));
    call.on('error', reject);
    call.on('end', () => resolve(Buffer.concat(chunks)));
  });
}

// Node ends a stream cleanly just before it resets it, so that on the wire a cancelled push looks complete: only the
// declared length tells the server that it is not.
function resetPush() {
  return new Promise((resolve) => {
    const metadata = new grpc.Metadata();
    metadata.set('kinference-declared-length', '100');
    const call = client.PushBody(metadata, (error) => resolve(error.code));
    call.write({ chunk: Buffer.from('begun') });
    setTimeout(() => call.cancel(), 20);
  });
}

function cut(buffer, size) {
  const chunks = [];
  for (let start = 0; start < buffer.length; start += size) chunks.push(buffer.subarray(start, start + size));
  return chunks;
}

function check(holds, what) {
  if (!holds) throw new Error(what);
}

async function flow(number) {
  const sent = body(number, (number % 5) * 30000);
  const { streamId, totalBytes } = await push(cut(sent, 1000 + number), sent.length);
  check(Number(totalBytes) === sent.length, 'total_bytes');
  const picked = await unary('Pick', { bodyStreamId: streamId, tenant: 'acme' });
  check(picked.outcome === 'OK' && picked.local.endpoint, `outcome ${picked.outcome}: ${picked.reason}`);
  const pulled = await pull(picked.responseId);
  check(pulled.length === Number(picked.bodyTotalBytes) && pulled.equals(sent), 'the body that came back');
  if (number % 4 === 0) {
    check((await unary('Abort', { responseId: picked.responseId, reason: 'NOT_DISPATCHED' })).released, 'abort');
    return;
  }
  const first = { responseId: picked.responseId, observedTtftMs: 12, upstreamStatus: 200 };
  check((await unary('ReportFirstToken', first)).acknowledged, 'the first report');
  const final = { responseId: picked.responseId, model, promptTokens: 9, completionTokens: 3, cachedTokens: 0 };
  check((await unary('ReportFinalToken', final)).acknowledged, 'the final report');
}

async function code(promise) {
  try {
    await promise;
  } catch (error) {
    return error.code;
  }
  return grpc.status.OK;
}

async function refusals() {
  const { streamId } = await push([body(0, 0)]);
  const picked = await unary('Pick', { bodyStreamId: streamId, tenant: 'acme' });
  await pull(picked.responseId);
  const found = {
    'an oversized chunk': [await code(push([Buffer.alloc(MIB + 1)])), grpc.status.RESOURCE_EXHAUSTED],
    'a wrong length': [await code(push([Buffer.alloc(10)], 11)), grpc.status.INVALID_ARGUMENT],
    'id 0': [await code(unary('Pick', { bodyStreamId: '0' })), grpc.status.INVALID_ARGUMENT],
    'an unknown id': [await code(unary('Pick', { bodyStreamId: '12345' })), grpc.status.NOT_FOUND],
    'a second Pick': [await code(unary('Pick', { bodyStreamId: streamId })), grpc.status.FAILED_PRECONDITION],
    'a second PullBody': [await code(pull(picked.responseId)), grpc.status.NOT_FOUND],
    'a reset push': [await resetPush(), grpc.status.CANCELLED],
  };
  for (const [what, [got, wanted]] of Object.entries(found)) check(got === wanted, `${what}: status ${got}, not ${wanted}`);
  check((await unary('Abort', { responseId: picked.responseId })).released, 'the abort');
}

async function main() {
  await Promise.all(Array.from({ length: IN_FLIGHT }, (_, number) => flow(number)));
  await refusals();
  console.log(`${IN_FLIGHT} requests and every refusal`);
  client.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
