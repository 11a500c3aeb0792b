import { createRequire, register } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isAbsolute } from 'node:path';
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';

// Takes the same arguments as process.js, and sends the files that Node loads for these imports.
const names = process.argv.slice(2);

const { port1, port2 } = new MessageChannel();
register('./watch-loads.js', {
  parentURL: import.meta.url,
  data: { port: port2 },
  transferList: [port2],
});
for (const name of names) await import(isAbsolute(name) ? pathToFileURL(name).href : name);

const modules: string[] = [];
for (let next = receiveMessageOnPort(port1); next; next = receiveMessageOnPort(port1)) {
  if (String(next.message).startsWith('file:')) modules.push(fileURLToPath(String(next.message)));
}
const commonJs = Object.keys(createRequire(import.meta.url).cache);
process.send?.([...modules, ...commonJs], undefined, undefined, () => process.exit(0));
