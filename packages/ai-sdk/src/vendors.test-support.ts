import { createAmazonBedrock } from '@ai-sdk/amazon-bedrock';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createCohere } from '@ai-sdk/cohere';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createVertex } from '@ai-sdk/google-vertex';
import { createMistral } from '@ai-sdk/mistral';
import { createOpenAI } from '@ai-sdk/openai';
import { createXai } from '@ai-sdk/xai';
import type { AiSdkCallSettings, AiSdkLanguageModel } from './index.js';
import {
  claude,
  cohereChat,
  converse,
  gemini,
  grok,
  mistralChat,
  responses,
  type Wire,
} from './wires.test-support.js';

/** A key that no output may show. */
export const secret = 'sk-proj-9fQ2mZxT4vLr8KcYb1NwHd7s';

/** A provider package, the wire format it speaks, and what its vendor has. */
export interface Vendor {
  readonly name: string;
  readonly wire: Wire;
  readonly create: (url: string) => AiSdkLanguageModel;
  /** What goes back with a thought: its signature, its text, or nothing. */
  readonly keeps: 'signature' | 'text' | 'nothing';
  readonly cites: boolean;
  /** Whether its usage has tokens of the cache. */
  readonly caches: boolean;
  /** What it makes of 5 tokens of an answer. */
  readonly outputTokens: number;
  readonly settings?: AiSdkCallSettings;
}

const all = { keeps: 'signature', cites: true, caches: true, outputTokens: 5 } as const;

export const vendors: readonly Vendor[] = [
  {
    ...all,
    name: 'Google',
    wire: gemini,
    create: (baseURL) => createGoogleGenerativeAI({ apiKey: secret, baseURL })('gemini-2.5-flash'),
  },
  {
    ...all,
    name: 'Google Vertex',
    wire: gemini,
    create: (baseURL) => createVertex({ apiKey: secret, baseURL })('gemini-2.5-flash'),
  },
  {
    ...all,
    name: 'Amazon Bedrock',
    wire: converse,
    create: (baseURL) =>
      createAmazonBedrock({ apiKey: secret, baseURL, region: 'us-east-1' })(
        'anthropic.claude-sonnet-4-5-20250929-v1:0',
      ),
    cites: false,
  },
  {
    ...all,
    name: 'Cohere',
    wire: cohereChat,
    create: (baseURL) => createCohere({ apiKey: secret, baseURL })('command-a-reasoning-08-2025'),
    keeps: 'nothing',
    cites: false,
    caches: false,
  },
  {
    ...all,
    name: 'xAI',
    wire: grok,
    create: (baseURL) => createXai({ apiKey: secret, baseURL }).chat('grok-4'),
    keeps: 'nothing',
    outputTokens: 7,
  },
  {
    ...all,
    name: 'Mistral',
    wire: mistralChat,
    create: (baseURL) => createMistral({ apiKey: secret, baseURL })('magistral-medium-latest'),
    keeps: 'text',
    cites: false,
  },
  {
    ...all,
    name: 'Anthropic',
    wire: claude,
    create: (baseURL) => createAnthropic({ apiKey: secret, baseURL })('claude-sonnet-4-5'),
  },
  {
    ...all,
    name: 'OpenAI',
    wire: responses,
    create: (baseURL) => createOpenAI({ apiKey: secret, baseURL }).responses('gpt-5-mini'),
    settings: { providerOptions: { openai: { store: false } } },
  },
];
