import type { LoadHook } from 'node:module';
import type { MessagePort } from 'node:worker_threads';

let port: MessagePort;

export const initialize = (data: { readonly port: MessagePort }): void => {
  port = data.port;
};

/** Names each ES module that is loaded. */
export const load: LoadHook = async (url, context, nextLoad) => {
  const loaded = await nextLoad(url, context);
  if (loaded.format === 'module') port.postMessage(url);
  return loaded;
};
