import type {
  AssistantBlock,
  AssistantMessage,
  ContentBlock,
  Message,
  ModelRequest,
  ToolMessage,
  ToolCallBlock,
  UserMessage,
} from 'millrace';
import fc from 'fast-check';

const anyText = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', ' ', '\n', 'ends in space \n', '\ud83d', 'half \udc00', '"\\ud83d"'),
);

const base64 = fc.base64String({ minLength: 4, maxLength: 8 }).filter((text) => text !== '');

const text: fc.Arbitrary<ContentBlock> = anyText.map((it) => ({ type: 'text', text: it }));

const media: fc.Arbitrary<ContentBlock> = fc.oneof(
  base64.map((data) => ({
    type: 'image' as const,
    source: { kind: 'base64' as const, mediaType: 'image/png', data },
  })),
  fc.constant({
    type: 'image' as const,
    source: { kind: 'url' as const, url: 'https://example.com/a.png' },
  }),
  fc.record({
    type: fc.constant('file' as const),
    source: fc.constantFrom('application/pdf', 'text/plain', 'text/markdown').map((mediaType) => ({
      kind: 'base64' as const,
      mediaType,
      data: 'TWlsbHJhY2U=',
    })),
    name: fc.constant('paper'),
  }),
  fc.constant({
    type: 'file' as const,
    source: { kind: 'url' as const, url: 'https://example.com/a.pdf' },
  }),
);

const said = fc.array(fc.oneof({ weight: 3, arbitrary: text }, media), { maxLength: 4 });

/** Signatures as Anthropic makes them. */
export const signature = fc.base64String({ minLength: 4, maxLength: 40 }).filter((it) => it !== '');

const thinking: fc.Arbitrary<AssistantBlock> = fc.oneof(
  fc.record({ type: fc.constant('thinking' as const), text: anyText, signature }),
  signature.map((data) => ({
    type: 'thinking' as const,
    text: '',
    signature: data,
    redacted: true,
  })),
  anyText.map((it) => ({ type: 'thinking' as const, text: it })),
  fc.constant({
    type: 'thinking' as const,
    text: 'of another vendor',
    signature: '{"vendor":"OpenAI","kind":"item","value":{"id":"rs_1"}}',
  }),
);

const toolName = fc.oneof(
  fc.constantFrom('weather', 'files.read', 'a b', '', '__proto__', 'x'.repeat(80)),
  fc.string({ maxLength: 8 }),
);

const toolId = fc.oneof(
  fc.constantFrom('call_1', 'a.b', 'a:b', '', '__proto__', '\ud83d', 'id_', 'id__61_'),
  fc.uuid(),
  fc.string({ unit: 'binary', maxLength: 6 }),
);

const input = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 3 });

const toolCall: fc.Arbitrary<Omit<ToolCallBlock, 'id'>> = fc.oneof(
  fc.record({ type: fc.constant('tool_call' as const), name: toolName, input }),
  fc.record({
    type: fc.constant('tool_call' as const),
    name: toolName,
    input: fc.constant({}),
    invalidInput: fc.constant('{"city'),
  }),
);

const name = fc.option(fc.constantFrom('Anna', 'Ben'), { nil: undefined });

type Step = (at: number, ids: () => string) => readonly Message[];

const named = (who: string | undefined): { readonly name?: string } =>
  who === undefined ? {} : { name: who };

const userStep: fc.Arbitrary<Step> = fc
  .record({ content: said, name })
  .map(({ content, name: who }) => (at): readonly Message[] => {
    const message: UserMessage = { id: `m${at}`, role: 'user', content, ...named(who) };
    return [message];
  });

const result = fc.record({ content: said, isError: fc.boolean(), details: fc.anything() });

const assistantStep: fc.Arbitrary<Step> = fc
  .record({
    content: fc.array(fc.oneof(text, media, thinking), { maxLength: 4 }),
    uses: fc.array(fc.record({ use: toolCall, result }), { maxLength: 3 }),
    name,
  })
  .map(({ content, uses, name: who }) => (at, nextId): readonly Message[] => {
    const asked = uses.map(({ use, result: given }) => ({ id: nextId(), use, given }));
    const message: AssistantMessage = {
      id: `m${at}`,
      role: 'assistant',
      content: [...content, ...asked.map(({ id, use }) => ({ ...use, id }))],
      ...named(who),
    };
    const results: ToolMessage = {
      id: `m${at}r`,
      role: 'tool',
      content: asked.map(({ id, given }) => ({ type: 'tool_result', toolCallId: id, ...given })),
    };
    return asked.length === 0 ? [message] : [message, results];
  });

/** Any conversation that the core may hold: in any order of roles, each tool use answered, no two of one id. */
export const conversation: fc.Arbitrary<readonly Message[]> = fc
  .tuple(
    fc.array(fc.oneof(userStep, assistantStep), { minLength: 1, maxLength: 6 }),
    fc.uniqueArray(toolId, { minLength: 18, maxLength: 18 }),
  )
  .map(([steps, ids]) => {
    const left = [...ids];
    return steps.flatMap((step, at) => step(at, () => left.pop() ?? ''));
  });

const declaration = fc.record({
  name: toolName,
  description: anyText,
  inputSchema: fc.constantFrom<Readonly<Record<string, unknown>>>(
    { type: 'object', properties: { city: { type: 'string' } } },
    { type: 'object', anyOf: [{ required: ['a'] }, { required: ['b'] }] },
  ),
});

/** Any request with such a conversation. */
export const modelRequest: fc.Arbitrary<ModelRequest> = fc
  .record(
    {
      messages: conversation,
      system: anyText,
      tools: fc.uniqueArray(declaration, { selector: (tool) => tool.name, maxLength: 3 }),
      toolChoice: fc.constantFrom('auto' as const, 'none' as const, 'required' as const),
      maxTokens: fc.integer({ min: 1, max: 100_000 }),
      stopSequences: fc.array(anyText, { maxLength: 2 }),
      temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    },
    { requiredKeys: ['messages'] },
  )
  .chain((request) => {
    const [first] = request.tools ?? [];
    return first === undefined
      ? fc.constant(request)
      : fc.constantFrom(request, { ...request, toolChoice: { name: first.name } });
  });

/** Freezes a conversation through and through, as the core does with what it sends. */
export const frozen = <Value>(value: Value): Value => {
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(frozen);
  return Object.freeze(value);
};
