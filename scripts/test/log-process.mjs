// Imported by each process of a test: appends what it has loaded to the file that MILLRACE_TEST_LOG names, when it ends.
import { appendFileSync } from 'node:fs';
import { createRequire, register } from 'node:module';
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';

const { port1, port2 } = new MessageChannel();
const hooks = `
  let port;
  export const initialize = (given) => { port = given; };
  export const load = async (url, context, next) => {
    const loaded = await next(url, context);
    if (loaded.format === 'module') port.postMessage(url);
    return loaded;
  };`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`, {
  data: port2,
  transferList: [port2],
});
port1.unref();

process.on('exit', () => {
  const files = Object.keys(createRequire(import.meta.url).cache);
  for (let next = receiveMessageOnPort(port1); next; next = receiveMessageOnPort(port1)) {
    if (next.message.startsWith('file:')) files.push(next.message);
  }
  const line = JSON.stringify({ program: process.argv[1], files });
  appendFileSync(process.env.MILLRACE_TEST_LOG, `${line}\n`);
});
