import { crc32 } from 'node:zlib';

/** What a vendor is to answer, in any wire format. */
export interface Answer {
  readonly thought?: { readonly text: string; readonly signature: string };
  readonly text?: readonly string[];
  readonly calls?: readonly {
    readonly id: string;
    readonly name: string;
    readonly json: readonly string[];
  }[];
  readonly source?: { readonly url: string; readonly title: string };
  readonly stop?: 'length';
}

export type Frame = string | Uint8Array;

/** The wire format of a vendor. */
export interface Wire {
  readonly contentType: string;
  /** The frames of the content, and those that end the answer. */
  frames(answer: Answer): { readonly content: readonly Frame[]; readonly end: readonly Frame[] };
  /** A frame that reports an error within an answer. */
  readonly fault: Frame;
}

const sse = (data: unknown, event?: string): string =>
  `${event === undefined ? '' : `event: ${event}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;

const parsed = (json: readonly string[]): unknown => JSON.parse(json.join('') || '{}');

const finishes = { stop: 'stop', calls: 'tool_calls', length: 'length' } as const;
const endOf = ({ stop, calls = [] }: Answer): keyof typeof finishes =>
  stop ?? (calls.length > 0 ? 'calls' : 'stop');

/** Google's `streamGenerateContent`. */
export const gemini: Wire = {
  contentType: 'text/event-stream',
  frames: ({ thought, text = [], calls = [], source, stop }) => {
    const part = (it: object, more: object = {}): string =>
      sse({ candidates: [{ content: { role: 'model', parts: [it] }, ...more }] });
    const grounding = source && {
      groundingMetadata: { groundingChunks: [{ web: { uri: source.url, title: source.title } }] },
    };
    return {
      content: [
        ...(thought ? [part({ text: thought.text, thought: true })] : []),
        ...text.map((it) => part({ text: it })),
        ...(thought && text.length > 0
          ? [part({ text: '', thoughtSignature: thought.signature })]
          : []),
        ...calls.map(({ name, json }) =>
          part({
            functionCall: { name, args: parsed(json) },
            ...(thought && { thoughtSignature: thought.signature }),
          }),
        ),
      ],
      end: [
        sse({
          candidates: [
            {
              content: { role: 'model', parts: [] },
              finishReason: stop === 'length' ? 'MAX_TOKENS' : 'STOP',
              ...grounding,
            },
          ],
          usageMetadata: {
            promptTokenCount: 10,
            cachedContentTokenCount: 4,
            candidatesTokenCount: 3,
            thoughtsTokenCount: 2,
            totalTokenCount: 15,
          },
        }),
      ],
    };
  },
  fault: sse({ error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }),
};

/** One message of Amazon's event stream: lengths, headers and checksums around a JSON payload. */
const amazonFrame = (type: string, payload: object, kind = 'event'): Uint8Array => {
  const encode = (text: string): Buffer => Buffer.from(text, 'utf8');
  const header = (name: string, value: string): Buffer =>
    Buffer.concat([
      Buffer.from([name.length]),
      encode(name),
      Buffer.from([7, value.length >> 8, value.length & 255]),
      encode(value),
    ]);
  const typeHeader = kind === 'event' ? ':event-type' : ':exception-type';
  const headers = Buffer.concat([
    header(typeHeader, type),
    header(':content-type', 'application/json'),
    header(':message-type', kind),
  ]);
  const body = encode(JSON.stringify(payload));
  const prelude = Buffer.alloc(8);
  prelude.writeUInt32BE(16 + headers.length + body.length, 0);
  prelude.writeUInt32BE(headers.length, 4);
  const sum = (bytes: Buffer): Buffer => {
    const checksum = Buffer.alloc(4);
    checksum.writeUInt32BE(crc32(bytes), 0);
    return checksum;
  };
  const start = Buffer.concat([prelude, sum(prelude), headers, body]);
  return Buffer.concat([start, sum(start)]);
};

/** Bedrock's `converse-stream`. */
export const converse: Wire = {
  contentType: 'application/vnd.amazon.eventstream',
  frames: (answer) => {
    const { thought, text = [], calls = [] } = answer;
    let index = 0;
    const block = (deltas: readonly object[], start?: object): readonly Uint8Array[] => {
      const contentBlockIndex = index++;
      return [
        ...(start ? [amazonFrame('contentBlockStart', { contentBlockIndex, start })] : []),
        ...deltas.map((delta) => amazonFrame('contentBlockDelta', { contentBlockIndex, delta })),
        amazonFrame('contentBlockStop', { contentBlockIndex }),
      ];
    };
    const reasoning = thought
      ? block([
          { reasoningContent: { text: thought.text } },
          { reasoningContent: { signature: thought.signature } },
        ])
      : [];
    const said = text.length > 0 ? block(text.map((it) => ({ text: it }))) : [];
    const called = calls.flatMap(({ id, name, json }) =>
      block(
        json.map((input) => ({ toolUse: { input } })),
        { toolUse: { toolUseId: id, name } },
      ),
    );
    const stopReason = { stop: 'end_turn', calls: 'tool_use', length: 'max_tokens' }[endOf(answer)];
    return {
      content: [
        amazonFrame('messageStart', { role: 'assistant' }),
        ...reasoning,
        ...said,
        ...called,
      ],
      end: [
        amazonFrame('messageStop', { stopReason }),
        amazonFrame('metadata', {
          usage: { inputTokens: 6, outputTokens: 5, cacheReadInputTokens: 4, totalTokens: 15 },
        }),
      ],
    };
  },
  fault: amazonFrame('serviceUnavailableException', { message: 'The model is overloaded.' }),
};

/** Cohere's chat API, version 2. */
export const cohereChat: Wire = {
  contentType: 'text/event-stream',
  frames: (answer) => {
    const { thought, text = [], calls = [] } = answer;
    const event = (type: string, more: object = {}): string => sse({ type, ...more }, type);
    const content = (index: number, kind: string, deltas: readonly string[]) => [
      event('content-start', {
        index,
        delta: { message: { content: { type: kind, [kind]: '' } } },
      }),
      ...deltas.map((it) =>
        event('content-delta', { index, delta: { message: { content: { [kind]: it } } } }),
      ),
      event('content-end', { index }),
    ];
    const reason = { stop: 'COMPLETE', calls: 'TOOL_CALL', length: 'MAX_TOKENS' }[endOf(answer)];
    return {
      content: [
        event('message-start', { id: 'a1' }),
        ...(thought ? content(0, 'thinking', [thought.text]) : []),
        ...(text.length > 0 ? content(1, 'text', text) : []),
        ...calls.flatMap(({ id, name, json: [first = '', ...rest] }) => [
          event('tool-call-start', {
            delta: {
              message: {
                tool_calls: { id, type: 'function', function: { name, arguments: first } },
              },
            },
          }),
          ...rest.map((it) =>
            event('tool-call-delta', {
              delta: { message: { tool_calls: { function: { arguments: it } } } },
            }),
          ),
          event('tool-call-end'),
        ]),
      ],
      end: [
        event('message-end', {
          delta: {
            finish_reason: reason,
            usage: { tokens: { input_tokens: 10, output_tokens: 5 }, cached_tokens: 4 },
          },
        }),
      ],
    };
  },
  fault: sse({ id: 'a1', message: 'The model is overloaded.' }, 'error'),
};

/** Chat completions, as xAI and Mistral have them. `thinks` writes a thought in the vendor's own way. */
const completions = (
  thinks: (text: string) => object,
  usage: object,
  source: (it: NonNullable<Answer['source']>) => object,
): Wire => {
  const chunk = (delta: object, more: object = {}, top: object = {}): string =>
    sse({
      ...{ id: 'a1', object: 'chat.completion.chunk', created: 1, model: 'm' },
      choices: [{ index: 0, delta, ...more }],
      ...top,
    });
  return {
    contentType: 'text/event-stream',
    frames: (answer) => ({
      content: [
        chunk({ role: 'assistant', content: '' }),
        ...(answer.thought ? [chunk(thinks(answer.thought.text))] : []),
        ...(answer.text ?? []).map((content) => chunk({ content })),
        ...(answer.calls ?? []).map(({ id, name, json }, index) =>
          chunk({
            tool_calls: [
              { index, id, type: 'function', function: { name, arguments: json.join('') } },
            ],
          }),
        ),
      ],
      end: [
        chunk(
          {},
          { finish_reason: finishes[endOf(answer)] },
          { usage, ...(answer.source && source(answer.source)) },
        ),
        sse('[DONE]'),
      ],
    }),
    fault: sse({ error: { message: 'The model is overloaded.', code: 'overloaded' } }),
  };
};

export const grok: Wire = completions(
  (text) => ({ reasoning_content: text }),
  {
    ...{ prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    prompt_tokens_details: { cached_tokens: 4 },
    completion_tokens_details: { reasoning_tokens: 2 },
  },
  ({ url }) => ({ citations: [url] }),
);

export const mistralChat: Wire = completions(
  (text) => ({ content: [{ type: 'thinking', thinking: [{ type: 'text', text }] }] }),
  { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, num_cached_tokens: 4 },
  () => ({}),
);

/** Anthropic's messages. */
export const claude: Wire = {
  contentType: 'text/event-stream',
  frames: (answer) => {
    const { thought, text = [], calls = [], source } = answer;
    const event = (type: string, more: object): string => sse({ type, ...more }, type);
    let index = 0;
    const block = (content_block: object, deltas: readonly object[]): readonly string[] => {
      const at = { index: index++ };
      return [
        event('content_block_start', { ...at, content_block }),
        ...deltas.map((delta) => event('content_block_delta', { ...at, delta })),
        event('content_block_stop', at),
      ];
    };
    const cited = source && {
      type: 'citations_delta',
      citation: {
        ...{ type: 'web_search_result_location', url: source.url, title: source.title },
        ...{ cited_text: 'Snow', encrypted_index: 'x' },
      },
    };
    const usage = { input_tokens: 6, cache_read_input_tokens: 4, output_tokens: 5 };
    const message = {
      ...{ id: 'a1', type: 'message', role: 'assistant', model: 'm', content: [] },
      ...{ stop_reason: null, stop_sequence: null, usage: { ...usage, output_tokens: 1 } },
    };
    const reason = { stop: 'end_turn', calls: 'tool_use', length: 'max_tokens' }[endOf(answer)];
    const { signature = '' } = thought ?? {};
    return {
      content: [
        event('message_start', { message }),
        ...(thought
          ? block({ type: 'thinking', thinking: '', signature: '' }, [
              { type: 'thinking_delta', thinking: thought.text },
              { type: 'signature_delta', signature },
            ])
          : []),
        ...(text.length > 0
          ? block({ type: 'text', text: '' }, [
              ...text.map((it) => ({ type: 'text_delta', text: it })),
              ...(cited ? [cited] : []),
            ])
          : []),
        ...calls.flatMap(({ id, name, json }) =>
          block(
            { type: 'tool_use', id, name, input: {} },
            json.map((partial_json) => ({ type: 'input_json_delta', partial_json })),
          ),
        ),
      ],
      end: [
        event('message_delta', { delta: { stop_reason: reason, stop_sequence: null }, usage }),
        event('message_stop', {}),
      ],
    };
  },
  fault: sse(
    { type: 'error', error: { type: 'overloaded_error', message: 'The model is overloaded.' } },
    'error',
  ),
};

/** OpenAI's Responses API. */
export const responses: Wire = {
  contentType: 'text/event-stream',
  frames: (answer) => {
    const { thought, text = [], calls = [], source, stop } = answer;
    const event = (type: string, more: object): string => sse({ type, ...more }, type);
    let count = 0;
    const item = (it: object, between: (id: object) => readonly string[], done: object) => {
      const output_index = count++;
      const id = `item_${output_index}`;
      return [
        event('response.output_item.added', { output_index, item: { ...it, id } }),
        ...between({ output_index, item_id: id }),
        event('response.output_item.done', { output_index, item: { ...it, id, ...done } }),
      ];
    };
    const reasoning = { type: 'reasoning', summary: [] };
    const annotation = source && { type: 'url_citation', start_index: 0, end_index: 4, ...source };
    const summary = { summary_index: 0 };
    const usage = {
      ...{ input_tokens: 10, output_tokens: 5, total_tokens: 15 },
      input_tokens_details: { cached_tokens: 4 },
      output_tokens_details: { reasoning_tokens: 2 },
    };
    const response = { id: 'a1', model: 'm', created_at: 1, usage };
    return {
      content: [
        event('response.created', { response: { id: 'a1', model: 'm', created_at: 1 } }),
        ...(thought
          ? item(
              reasoning,
              (at) => [
                event('response.reasoning_summary_part.added', { ...at, ...summary }),
                event('response.reasoning_summary_text.delta', {
                  ...{ ...at, ...summary },
                  delta: thought.text,
                }),
                event('response.reasoning_summary_part.done', { ...at, ...summary }),
              ],
              { encrypted_content: thought.signature },
            )
          : []),
        ...(text.length > 0
          ? item(
              { type: 'message', role: 'assistant', content: [] },
              (at) => [
                ...text.map((delta) =>
                  event('response.output_text.delta', { ...at, content_index: 0, delta }),
                ),
                ...(annotation
                  ? [
                      event('response.output_text.annotation.added', {
                        ...{ ...at, content_index: 0, annotation_index: 0 },
                        annotation,
                      }),
                    ]
                  : []),
              ],
              {},
            )
          : []),
        ...calls.flatMap(({ id, name, json }) =>
          item(
            { type: 'function_call', call_id: id, name, arguments: '' },
            (at) =>
              json.map((delta) =>
                event('response.function_call_arguments.delta', { ...at, delta }),
              ),
            { arguments: json.join(''), status: 'completed' },
          ),
        ),
      ],
      end: [
        stop === 'length'
          ? event('response.incomplete', {
              response: { ...response, incomplete_details: { reason: 'max_output_tokens' } },
            })
          : event('response.completed', { response }),
      ],
    };
  },
  fault: sse(
    {
      ...{ type: 'error', sequence_number: 1 },
      error: { type: 'server_error', code: 'server_error', message: 'The model is overloaded.' },
    },
    'error',
  ),
};
