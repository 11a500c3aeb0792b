import type { AssistantBlock, ContentBlock, Message, ModelChunk } from 'millrace';
import fc from 'fast-check';
import { parsedJson } from 'millrace/values';

/** A user message, for a test. */
export const user = (...content: readonly (string | ContentBlock)[]): Message => ({
  id: 'u',
  role: 'user',
  content: content.map((it) => (typeof it === 'string' ? { type: 'text', text: it } : it)),
});

/** An assistant message, for a test. */
export const assistant = (...content: readonly (string | AssistantBlock)[]): Message => ({
  id: 'a',
  role: 'assistant',
  content: content.map((it) => (typeof it === 'string' ? { type: 'text', text: it } : it)),
});

/** A tool use, for a test. */
export const use = (
  id: string,
  name = 'weather',
  input: Readonly<Record<string, unknown>> = { city: 'Oslo' },
): AssistantBlock => ({ type: 'tool_call', id, name, input });

/** The results of tool uses that gave text, for a test. */
export const results = (...given: readonly (readonly [id: string, text: string])[]): Message => ({
  id: 't',
  role: 'tool',
  content: given.map(([toolCallId, text]) => ({
    type: 'tool_result',
    toolCallId,
    content: [{ type: 'text', text }],
    isError: false,
  })),
});

/** A picture of a few bytes. */
export const picture: ContentBlock = {
  type: 'image',
  source: { kind: 'base64', mediaType: 'image/png', data: 'iVBORw0KGgo=' },
};

const text = fc.string({ unit: 'grapheme', maxLength: 20 });

const base64 = fc
  .uint8Array({ minLength: 1, maxLength: 9 })
  .map((bytes) => Buffer.from(bytes).toString('base64'));

const inline = (...mediaTypes: readonly string[]) =>
  fc.record({
    kind: fc.constant('base64' as const),
    mediaType: fc.constantFrom(...mediaTypes),
    data: base64,
  });

const address = fc.record({ kind: fc.constant('url' as const), url: fc.webUrl() });

const textual = fc.record({ type: fc.constant('text' as const), text });

const content = (takesAudio: boolean): fc.Arbitrary<ContentBlock> =>
  fc.oneof(
    { weight: 3, arbitrary: textual },
    fc.record({
      type: fc.constant('image' as const),
      source: fc.oneof(inline('image/png', 'image/jpeg'), address),
    }),
    fc.record({ type: fc.constant('file' as const), source: inline('application/pdf') }),
    ...(takesAudio
      ? [
          fc.record({
            type: fc.constant('audio' as const),
            source: inline('audio/wav', 'audio/mpeg'),
          }),
        ]
      : []),
  );

const hostile = fc.constantFrom('__proto__', 'constructor', 'wéather!', 'a'.repeat(80), '', 'a b');

const toolName = fc.oneof(fc.constantFrom('weather', 'search_docs'), hostile);

const input = fc.dictionary(fc.string({ maxLength: 8 }), fc.jsonValue({ maxDepth: 2 }), {
  maxKeys: 3,
});

const toolCall = fc.record(
  {
    type: fc.constant('tool_call' as const),
    id: fc.oneof(fc.uuid(), hostile, fc.stringMatching(/^call_[a-z0-9]{1,40}$/u)),
    name: toolName,
    input,
    invalidInput: fc.constant('{"city": '),
  },
  { requiredKeys: ['type', 'id', 'name', 'input'] },
);

const said = (signature: fc.Arbitrary<string>): fc.Arbitrary<AssistantBlock> =>
  fc.oneof(
    textual,
    fc.record(
      { type: fc.constant('thinking' as const), text, signature, redacted: fc.boolean() },
      { requiredKeys: ['type', 'text'] },
    ),
  );

interface Turn {
  readonly question: readonly ContentBlock[];
  readonly name?: string;
  readonly steps: readonly {
    readonly before: readonly AssistantBlock[];
    readonly uses: readonly Extract<AssistantBlock, { readonly type: 'tool_call' }>[];
    readonly after: readonly (readonly ContentBlock[])[];
    readonly isError: boolean;
  }[];
  readonly answer: readonly AssistantBlock[];
}

/**
 * Any conversation that the core may send: turns of a user, of tool uses with all of their results, and of answers;
 * tool uses have unique ids, and empty ones do not come. `signature` is what thinking may be signed with.
 */
export const conversations = (
  signature: fc.Arbitrary<string>,
  takesAudio: boolean,
): fc.Arbitrary<readonly Message[]> => {
  const step = fc.record({
    before: fc.array(said(signature), { maxLength: 3 }),
    uses: fc.array(toolCall, { minLength: 1, maxLength: 3 }),
    after: fc.array(fc.array(content(takesAudio), { maxLength: 2 }), {
      minLength: 3,
      maxLength: 3,
    }),
    isError: fc.boolean(),
  });
  const turn: fc.Arbitrary<Turn> = fc.record(
    {
      question: fc.array(content(takesAudio), { maxLength: 3 }),
      name: fc.oneof(fc.constantFrom('ada', 'Ada Lovelace'), text),
      steps: fc.array(step, { maxLength: 2 }),
      answer: fc.array(said(signature), { maxLength: 3 }),
    },
    { requiredKeys: ['question', 'steps', 'answer'] },
  );
  return fc.array(turn, { minLength: 1, maxLength: 3 }).map((turns) => turns.flatMap(messagesOf));
};

const messagesOf = ({ question, name, steps, answer }: Turn, turn: number): readonly Message[] => [
  { id: `u${turn}`, role: 'user', content: question, ...(name === undefined ? {} : { name }) },
  ...steps.flatMap(({ before, uses, after, isError }, step): readonly Message[] => {
    const unique = uses.map((it, index) => ({ ...it, id: `${it.id}${turn}${step}${index}` }));
    return [
      {
        id: `a${turn}.${step}`,
        role: 'assistant',
        content: [
          ...before,
          ...unique.map((it) => (it.invalidInput === undefined ? it : { ...it, input: {} })),
        ],
      },
      {
        id: `t${turn}.${step}`,
        role: 'tool',
        content: unique.map(({ id }, index) => ({
          type: 'tool_result',
          toolCallId: id,
          content: after[index] ?? [],
          isError,
        })),
      },
    ];
  }),
  { id: `a${turn}`, role: 'assistant', content: answer },
];

/** What chunks say: all text, all tool uses with their arguments parsed, all signatures. */
export const told = (chunks: readonly ModelChunk[]) => ({
  text: chunks.map((chunk) => (chunk.type === 'text' ? chunk.text : '')).join(''),
  thinking: chunks.map((chunk) => (chunk.type === 'thinking' ? chunk.text : '')).join(''),
  uses: chunks.flatMap((chunk) =>
    chunk.type === 'toolCall'
      ? [{ id: chunk.id, name: chunk.name, input: parsedJson(chunk.json ?? '{}') }]
      : [],
  ),
  signatures: chunks.flatMap((chunk) =>
    chunk.type === 'thinking' && chunk.signature !== undefined ? [chunk.signature] : [],
  ),
  finish: chunks.flatMap((chunk) => (chunk.type === 'finish' ? [chunk.finish] : [])),
});

/** Freezes a conversation through and through, as the core does with what it sends. */
export const frozen = <Value>(value: Value): Value => {
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(frozen);
  return Object.freeze(value);
};
