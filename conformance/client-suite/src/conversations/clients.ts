import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as ai6 from 'ai';
import { suite, versionOf } from '../columns.js';
import type { Client } from './tab.js';
import { agUiTabs } from './tabs/ag-ui.js';
import { aiSdkTabs } from './tabs/ai-sdk.js';
import { type AssistantUi, assistantUiTabs } from './tabs/assistant-ui.js';
import { responsesTabs } from './tabs/responses.js';

/** The clients of the workspace. */
export const clients: readonly Client[] = [
  aiSdkTabs(ai6, 6, versionOf('ai')),
  agUiTabs(versionOf('@ag-ui/client')),
  responsesTabs(versionOf('openai')),
];

const folder = join(suite, 'ai-7');

/** A module of the folder of AI SDK 7, which has a lock file of its own, and no types here. */
const loaded = async (name: string): Promise<unknown> => {
  const { resolve } = createRequire(join(folder, 'package.json'));
  return import(pathToFileURL(resolve(name)).href);
};

/** All of them, with AI SDK 7 and with assistant-ui, which uses it. */
export const allClients = async (): Promise<readonly Client[]> => {
  const [sdk, adapter, store, tap] = await Promise.all(
    ['ai', '@assistant-ui/ai-sdk', '@assistant-ui/store/client', '@assistant-ui/tap'].map(loaded),
  );
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- What the suite uses of it has the types of version 6.
  const ai7 = sdk as typeof ai6;
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- See `AssistantUi`.
  const aui = Object.assign({}, adapter, store, tap) as AssistantUi;
  const [first, ...others] = clients;
  return [
    ...(first === undefined ? [] : [first]),
    aiSdkTabs(ai7, 7, versionOf('ai', folder)),
    assistantUiTabs(aui, ai7, versionOf('@assistant-ui/ai-sdk', folder)),
    ...others,
  ];
};
