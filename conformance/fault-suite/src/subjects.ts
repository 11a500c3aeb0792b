import { anthropic } from '@millrace/anthropic';
import type { Model } from 'millrace';
import type { Wire } from '@millrace/fault-server';
import { openai } from '@millrace/openai';
import type { VendorSettings } from '@millrace/wire';

/** A key as a vendor's: whatever shows it has a leak. */
export const secret = 'sk-proj-9fQ2mZxT4vLr8KcYb1NwHd7s';

/** The settings that the expectations of the faults are made for, but for time. */
const settings: VendorSettings = {
  retry: { attempts: 3, minMs: 5, maxMs: 10, maxRetryWait: 60_000 },
  caps: {
    textLength: 100_000,
    argumentLength: 20_000,
    toolCalls: 128,
    depth: 100,
    eventLength: 1_000_000,
    errorBytes: 65_536,
  },
};

type Subject = (baseURL: string, otherwise?: VendorSettings) => Model;

/** Makes the model of a wire at an address. */
export const subjects: Readonly<Record<Wire, Subject>> = {
  chat: (baseURL, otherwise) =>
    openai.chat('gpt-5-mini', { apiKey: secret, baseURL, ...settings, ...otherwise }),
  responses: (baseURL, otherwise) =>
    openai.responses('gpt-5-mini', { apiKey: secret, baseURL, ...settings, ...otherwise }),
  messages: (baseURL, otherwise) =>
    anthropic('claude-sonnet-4-5', { apiKey: secret, baseURL, ...settings, ...otherwise }),
};
