// Imports modules one after the other in this process, which saves a start of Node for each. Prints
// a line of JSON for each module: its file, and what it printed to stdout and stderr.
import { inspect } from 'node:util';
import { pathToFileURL } from 'node:url';

const limitMs = 60_000;
const files = process.argv.slice(2);
const print = process.stdout.write.bind(process.stdout);
let current;

for (const name of ['stdout', 'stderr']) {
  process[name].write = (chunk, encoding, done) => {
    current[name] += typeof chunk === 'string' ? chunk : new TextDecoder().decode(chunk);
    const written = typeof encoding === 'function' ? encoding : done;
    if (written !== undefined) queueMicrotask(written);
    return true;
  };
}

const fail = (problem) => {
  current.stderr += typeof problem === 'string' ? problem : inspect(problem);
};
process.on('uncaughtException', fail);
process.on('warning', fail);

// Emitted when the event loop is empty: here, a process of its own would have ended.
process.on('beforeExit', () => {
  if (current !== undefined) finish();
  const file = files.shift();
  if (file !== undefined) setImmediate(() => start(file));
});

function start(file) {
  process.argv = [process.execPath, file];
  const limit = setTimeout(() => {
    fail(`The module did not end within ${limitMs} ms.`);
    finish();
    process.exit(1);
  }, limitMs).unref();
  current = { file, stdout: '', stderr: '', limit, isEvaluated: false };
  const end = () => (current.isEvaluated = true);
  import(pathToFileURL(file).href).catch(fail).finally(end);
}

function finish() {
  const { file, stdout, limit, isEvaluated } = current;
  clearTimeout(limit);
  if (!isEvaluated) fail('A top-level await never settled.');
  if ((process.exitCode ?? 0) !== 0) fail(`The exit code was set to ${process.exitCode}.`);
  process.exitCode = undefined;
  process.removeAllListeners('SIGINT').removeAllListeners('SIGTERM');
  print(`${JSON.stringify({ file, stdout, stderr: current.stderr })}\n`);
}
