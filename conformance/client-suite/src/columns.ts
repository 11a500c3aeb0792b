import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isRecord } from 'millrace/values';
import * as ai6 from 'ai';
import { a2aColumn } from './clients/a2a.js';
import { agUiColumn } from './clients/ag-ui.js';
import { aiSdk, overWebSocket } from './clients/ai-sdk.js';
import { chatCompletions } from './clients/chat-completions.js';
import { responses } from './clients/responses.js';
import type { Column } from './column.js';

export const suite = join(dirname(fileURLToPath(import.meta.url)), '..');

/** The name of a package and the version that is installed. */
export const versionOf = (name: string, folder = suite): string => {
  const paths = createRequire(join(folder, 'package.json')).resolve.paths(name) ?? [];
  const file = paths.map((path) => join(path, name, 'package.json')).find((it) => existsSync(it));
  const manifest: unknown = file === undefined ? undefined : JSON.parse(readFileSync(file, 'utf8'));
  if (!isRecord(manifest)) throw new Error(`${name} is not installed.`);
  return `${name} ${String(manifest['version'])}`;
};

/** The clients of the workspace. */
export const columns: readonly Column[] = [
  aiSdk(ai6, 6, versionOf('ai')),
  agUiColumn(versionOf('@ag-ui/client')),
  chatCompletions(versionOf('openai')),
  responses(versionOf('openai')),
  a2aColumn(versionOf('@a2a-js/sdk')),
];

/** All of them: AI SDK 7 has a folder of its own, because it asks for Node 22. */
export const allColumns = async (): Promise<readonly Column[]> => {
  const folder = join(suite, 'ai-7');
  const entry = createRequire(join(folder, 'package.json')).resolve('ai');
  // What the suite uses of version 7 has the types of version 6.
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- See above.
  const ai7 = (await import(pathToFileURL(entry).href)) as typeof ai6 & {
    readonly WebSocketChatTransport: Parameters<typeof overWebSocket>[0];
  };
  const version7 = versionOf('ai', folder);
  const [first, ...others] = columns;
  return [
    ...(first === undefined ? [] : [first]),
    aiSdk(ai7, 7, version7),
    aiSdk(ai7, 7, version7, {
      name: 'ai 7, WebSocket',
      connect: overWebSocket(ai7.WebSocketChatTransport),
    }),
    ...others,
  ];
};
