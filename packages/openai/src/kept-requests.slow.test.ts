import { describe, expect, it } from '@jest/globals';
import type { Message } from 'millrace';
import { encodeSignature, toolNames } from '@millrace/wire';
import fc from 'fast-check';
import { chatRequest } from './chat-request.js';
import {
  assistant,
  conversations,
  frozen,
  results,
  use,
  user,
} from './conversation.test-support.js';
import type { Profile } from './profile.js';
import { responsesRequest } from './responses-request.js';
import { toolIds } from './tool-ids.js';
import { profiles } from './vendors.js';
import type { WriteRequest } from './wire-model.js';

/** Makes what has written nothing yet. */
type Begin = () => WriteRequest;

const chat =
  (profile: Profile): Begin =>
  () =>
    chatRequest({ profile, model: 'm' });

const mine: Profile = {
  name: 'Mine',
  assistantTextAfterTools: 'OK.',
  continuation: { prefix: true },
  strictTools: true,
  toolIds: { accepts: /^call_\d+$/u, rename: (n) => `call_${n}` },
};

const wires: readonly (readonly [string, Begin, Profile])[] = [
  ['chat, as OpenAI has it', chat(profiles.openai), profiles.openai],
  ['chat, as OpenRouter has it', chat(profiles.openrouter), profiles.openrouter],
  ['chat, with all that a profile can want', chat(mine), mine],
  [
    'responses',
    () => responsesRequest({ profile: profiles.openai, model: 'gpt-5', store: false }),
    { name: 'OpenAI' },
  ],
];

const wireName = toolNames(['a b']).toWire('a b');

const schemas = [
  { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  { type: 'object', anyOf: [{ required: ['a'] }] },
];

const tools = fc.uniqueArray(
  fc.record({
    name: fc.constantFrom('weather', 'a b', wireName, 'a_b', '__proto__'),
    description: fc.string(),
    inputSchema: fc.constantFrom(...schemas),
  }),
  { selector: ({ name }) => name },
);

/** Requests of one conversation, and of parts of it, as whole or with copies in place of its messages. */
const requests = fc.array(
  fc.record({
    from: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat({ max: 3 })),
    until: fc.nat({ max: 60 }),
    isCopied: fc.boolean(),
    system: fc.constantFrom('', 'Be brief.', 'Be kind.'),
    tools,
  }),
  { maxLength: 6 },
);

/** Conversations of several pages. */
const long = (signature: fc.Arbitrary<string>) =>
  fc.array(conversations(signature, false), { minLength: 1, maxLength: 4 }).map((it) => it.flat());

const signature = fc.oneof(
  fc.string(),
  fc.constant(encodeSignature('OpenAI', 'extra_content', { google: { thought_signature: 's' } })),
  fc.constant(
    encodeSignature('OpenRouter', 'reasoning_details', [{ type: 'reasoning.text', text: 's' }]),
  ),
  fc.constant(encodeSignature('OpenAI', 'item', { type: 'reasoning', encrypted_content: 'gAAA' })),
);

const asked = (
  write: WriteRequest,
  { toolIds: rule }: Profile,
  request: Parameters<WriteRequest>[0],
): unknown => {
  const names = toolNames((request.tools ?? []).map(({ name }) => name));
  const toolName = (name: string): string => names.toWire(name);
  return JSON.parse(write(request, { toolName, toolId: toolIds(request.messages, rule) }));
};

describe.each(wires)('a request over %s', (_wire, begin, profile) => {
  it('X16: is the same, no matter what was sent before it', () => {
    fc.assert(
      fc.property(long(signature), requests, (messages, asks) => {
        frozen(messages);
        const write = begin();
        for (const { from, until, isCopied, ...options } of asks) {
          const sent = messages.slice(from, until);
          const request = { ...options, messages: isCopied ? structuredClone(sent) : sent };
          expect(asked(write, profile, request)).toEqual(asked(begin(), profile, request));
        }
      }),
      { numRuns: 200 },
    );
  });

  it('X6: does not read again what was sent before it', () => {
    const reads: number[] = [];
    const watched = ({ content, ...message }: Message): Message => {
      const place = reads.push(0) - 1;
      const get = () => {
        reads[place] = (reads[place] ?? 0) + 1;
        return content;
      };
      const watching = Object.defineProperty({ ...message }, 'content', { enumerable: true, get });
      return Object.freeze(watching as Message);
    };
    const turn = (n: number): readonly Message[] => [
      watched(frozen(assistant('I look.', use(`call_${n}`)))),
      watched(frozen(results([`call_${n}`, 'rain']))),
    ];
    const write = begin();
    const messages: Message[] = [watched(frozen(user('Hi')))];
    const readsAfter = (turns: number): readonly number[] => {
      for (let n = 0; n < turns; n += 1) {
        messages.push(...turn(n));
        asked(write, profile, { messages });
      }
      return [...reads];
    };
    const before = readsAfter(40);
    // All but the page that has begun, which is read once more when it is full.
    expect(readsAfter(40).slice(0, 64)).toEqual(before.slice(0, 64));
    const each = readsAfter(0);
    asked(write, profile, { messages });
    expect(readsAfter(0)).toEqual(each);
  });
});
