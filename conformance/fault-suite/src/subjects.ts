import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { aiSdkModel } from '@millrace/ai-sdk';
import { anthropic } from '@millrace/anthropic';
import type { Model } from 'millrace';
import type { Wire } from '@millrace/fault-server';
import { openai } from '@millrace/openai';
import type { VendorSettings } from '@millrace/wire';

/** A key as a vendor's: whatever shows it has a leak. */
export const secret = 'sk-proj-9fQ2mZxT4vLr8KcYb1NwHd7s';

/** The settings that the expectations of the faults are made for, but for time. */
const settings = {
  retry: { attempts: 3, minMs: 5, maxMs: 10, maxRetryWait: 60_000 },
  caps: {
    textLength: 100_000,
    argumentLength: 20_000,
    toolCalls: 128,
    depth: 100,
    eventLength: 1_000_000,
    errorBytes: 65_536,
  },
} satisfies VendorSettings;

type Subject = (baseURL: string, otherwise?: Pick<VendorSettings, 'caps' | 'timeouts'>) => Model;

/** Makes the model of a wire at an address. */
export type Subjects = Readonly<Record<Wire, Subject>>;

export const subjects: Subjects = {
  chat: (baseURL, otherwise) =>
    openai.chat('gpt-5-mini', { apiKey: secret, baseURL, ...settings, ...otherwise }),
  responses: (baseURL, otherwise) =>
    openai.responses('gpt-5-mini', { apiKey: secret, baseURL, ...settings, ...otherwise }),
  messages: (baseURL, otherwise) =>
    anthropic('claude-sonnet-4-5', { apiKey: secret, baseURL, ...settings, ...otherwise }),
};

/** The same wires, through provider packages of the AI SDK. */
export const aiSdkSubjects: Subjects = {
  chat: (baseURL, otherwise) =>
    aiSdkModel(createOpenAI({ apiKey: secret, baseURL }).chat('gpt-5-mini'), {
      ...{ ...settings, secrets: [secret] },
      ...otherwise,
    }),
  responses: (baseURL, otherwise) =>
    aiSdkModel(createOpenAI({ apiKey: secret, baseURL }).responses('gpt-5-mini'), {
      ...{ ...settings, secrets: [secret] },
      ...otherwise,
    }),
  messages: (baseURL, otherwise) =>
    aiSdkModel(createAnthropic({ apiKey: secret, baseURL: `${baseURL}/v1` })('claude-sonnet-4-5'), {
      ...settings,
      secrets: [secret],
      ...otherwise,
    }),
};
