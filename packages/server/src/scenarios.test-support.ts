import {
  type AgentEvent,
  type AgentOptions,
  type AssistantBlock,
  type CallOptions,
  createAgent,
  fallback,
  interruptOn,
  MillraceError,
  type ModelChunk,
  on,
  output,
  requireApproval,
  retry,
  sequential,
  suspend,
  textBlock,
  textOf,
  tool,
  toolOutput,
} from 'millrace';
import { parsedJson } from 'millrace/values';
import { jsonSchema } from 'millrace/schema';
import { asAgent, handoff, speaking } from 'millrace/teams';
import { finish, scriptedModel, text, thinking, toolCall } from 'millrace/testing';
import {
  asapScheduler,
  concat,
  defer,
  filter,
  from,
  map,
  NEVER,
  type Observable,
  of,
  Subject,
  throwError,
} from 'rxjs';

const finder = () =>
  createAgent({ name: 'researcher', model: scriptedModel([text('I look it up.')]) });

const careful = () =>
  createAgent({
    name: 'careful',
    model: scriptedModel(
      [text('I look. '), toolCall('weather', { city: 'Oslo' })],
      [thinking('So.'), text('Rain in '), text('Oslo.')],
    ),
    tools: [weather],
  });

/** One call to look at, made anew for each subscription. */
export interface Scenario {
  readonly name: string;
  readonly stream$: (options?: CallOptions) => Observable<AgentEvent>;
  /** The text that a reader ends up with; `undefined` where there is no reply. */
  readonly answer: string | undefined;
  /** What a reader is told where there is no reply, and nobody has aborted the call. */
  readonly error?: string;
}

export const secret = 'sk-hunter2';

const weather = tool({
  name: 'weather',
  description: 'Tells the weather.',
  input: jsonSchema({
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
  }),
  run: ({ city }) => `Rain in ${city}.`,
});
const broken = tool({
  name: 'broken',
  description: 'Fails.',
  run: () => {
    throw new Error(`refused, the password was ${secret}`);
  },
});
const upload = tool({
  name: 'upload',
  description: 'Makes progress.',
  run: () =>
    from([
      { percent: 50n },
      { percent: 100n },
      toolOutput({ content: 'Done.', details: { a: 1 } }),
    ]),
});
const fails = (code: 'server' | 'connection', ...before: readonly ModelChunk[]) =>
  concat(
    from(before),
    throwError(
      () => new MillraceError(code, `500 from upstream: ${secret}`, { cause: new Error(secret) }),
    ),
  );
const streamed = (id: string, name: string, ...json: readonly string[]): readonly ModelChunk[] =>
  json.map((piece, index): ModelChunk => ({
    type: 'toolCall',
    id,
    json: piece,
    ...(index === 0 ? { name } : {}),
  }));

const noAnswer = 'The service did not respond as expected. Please try again.';

/** Both options, with the layers of both. */
const joined = (call: CallOptions, given: CallOptions = {}): CallOptions => ({
  ...call,
  ...given,
  use: [call.use ?? [], given.use ?? []].flat(),
});

const failing$ = (
  name: string,
  error: string,
  options: () => AgentOptions,
  call?: () => CallOptions,
): Scenario => ({ ...of$(name, undefined, options, call), error });

const of$ = (
  name: string,
  answer: string | undefined,
  options: () => AgentOptions,
  call: () => CallOptions = () => ({}),
): Scenario => ({
  name,
  answer,
  stream$: (given) => createAgent(options()).stream$('Go.', joined(call(), given)),
});

/** Does something where it is reached, and goes no further. */
const then = (act: () => void): Observable<never> =>
  defer(() => {
    act();
    return NEVER;
  });

const onAsap = (): CallOptions => ({ scheduler: asapScheduler });

const stopped$ = (
  name: string,
  answer: string | undefined,
  make: (stop$: Subject<string | undefined>) => readonly [AgentOptions, CallOptions],
): Scenario => ({
  name,
  answer,
  stream$: (given) => {
    const [options, call] = make(new Subject());
    return createAgent(options).stream$('Go.', joined(call, given));
  },
});

const researcher = () =>
  createAgent({
    name: 'researcher',
    model: scriptedModel(
      [text('Below. '), toolCall('weather', { city: 'Bergen' }, 'w')],
      [thinking('hm'), text('Below again.')],
    ),
    tools: [weather],
  });
const asks = tool({
  name: 'ask',
  description: 'Asks.',
  run: (_input, context) =>
    researcher()
      .call$('Facts!', { parent: context })
      .pipe(map((reply) => textOf(reply))),
});

export const longText = Array.from({ length: 400 }, (_, line) => `Line ${line} — åäö 😀.\n`);

export const scenarios: readonly Scenario[] = [
  of$('text and thinking', 'Hello there.', () => ({
    model: scriptedModel([thinking('Let me '), thinking('see.'), text('Hello '), text('there.')]),
  })),
  of$('parallel tools', 'Rain everywhere.', () => ({
    model: scriptedModel(
      [
        text('I look. '),
        ...streamed('a', 'weather', '{"city":', '"Oslo"}'),
        ...streamed('b', 'weather', '{"city":"Rome"}'),
      ],
      [text('Rain everywhere.')],
    ),
    tools: [weather],
  })),
  of$('a tool error', 'It is broken.', () => ({
    model: scriptedModel([toolCall('broken', {}, 'x')], [text('It is broken.')]),
    tools: [broken],
  })),
  of$('an unknown tool and arguments that are no JSON', 'So.', () => ({
    model: scriptedModel(
      [toolCall('rm', {}, 'x'), ...streamed('y', 'weather', '{"city":')],
      [text('So.')],
    ),
    tools: [weather],
  })),
  of$('a denial', 'Then not.', () => ({
    model: scriptedModel(
      [toolCall('weather', { city: 'Oslo' }, 'a'), toolCall('weather', { city: 'Rome' }, 'b')],
      [text('Then not.')],
    ),
    tools: [weather],
    use: [
      on(
        'preActing',
        filter(({ toolCall: { id } }) => id !== 'a'),
      ),
    ],
  })),
  of$('an approval', 'So.', () => ({
    model: scriptedModel(
      [toolCall('weather', { city: 'Oslo' }, 'a'), toolCall('weather', { city: 'Rome' }, 'b')],
      [text('So.')],
    ),
    tools: [
      requireApproval(weather, ({ toolCallId }) =>
        toolCallId === 'a'
          ? { approved: true, input: { city: 'Paris' } }
          : { approved: false, reason: secret },
      ),
    ],
  })),
  of$('an approval below', 'So.', () => ({
    name: 'editor',
    model: scriptedModel([toolCall('ask', {}, 'w')], [text('So.')]),
    tools: [
      tool({
        name: 'ask',
        description: 'Asks one that asks for approval.',
        run: (_input, context) =>
          createAgent({
            name: 'careful',
            model: scriptedModel([toolCall('weather', { city: 'Oslo' }, 'a')], [text('Well.')]),
            tools: [requireApproval(weather, () => true)],
          })
            .call$('?', { parent: context })
            .pipe(map((reply) => textOf(reply))),
      }),
    ],
  })),
  of$('a suspension', '', () => ({
    model: scriptedModel([toolCall('pay', {}, 'p')]),
    tools: [
      tool({ name: 'pay', description: 'Asks for money.', run: () => suspend({ amount: 5 }) }),
    ],
  })),
  of$('arguments that were repaired', 'So.', () => ({
    model: scriptedModel([...streamed('a', 'weather', "{'city': ", "'Oslo'}")], [text('So.')]),
    tools: [weather],
  })),
  of$('progress', 'Uploaded.', () => ({
    model: scriptedModel([toolCall('upload', {}, 'u')], [text('Uploaded.')]),
    tools: [upload],
  })),
  failing$('a fault in the middle', noAnswer, () => ({
    model: scriptedModel(fails('server', text('Hel'), ...streamed('a', 'weather', '{"ci'))),
    tools: [weather],
  })),
  failing$('a fault behind a tool', noAnswer, () => ({
    model: scriptedModel([toolCall('weather', { city: 'Oslo' })], fails('server')),
    tools: [weather],
  })),
  failing$(
    'a refused call',
    'Something went wrong.',
    () => ({ model: scriptedModel() }),
    () => ({ request: { toolChoice: { name: 'none' } } }),
  ),
  of$(
    'an interrupt with a message',
    'Stopped by you.',
    () => ({ model: scriptedModel([text('Never seen.')]) }),
    () => ({ use: [interruptOn(of('Stopped by you.'))] }),
  ),
  stopped$('an interrupt in the middle', 'As far as th', (stop$) => [
    {
      model: scriptedModel(
        concat(
          of(text('As far as th'), ...streamed('a', 'w', '{"')),
          then(() => stop$.next(undefined)),
        ),
      ),
    },
    { use: [interruptOn(stop$)] },
  ]),
  stopped$('an interrupt of tools', 'Enough.', (stop$) => [
    {
      model: scriptedModel([
        text('Wait. '),
        toolCall('never', {}, 'n'),
        toolCall('never', {}, 'm'),
      ]),
      tools: [
        tool({
          name: 'never',
          description: 'Takes long.',
          run: (_input, { toolCallId }) =>
            toolCallId === 'm' ? then(() => stop$.next('Enough.')) : NEVER,
        }),
      ],
    },
    { use: [interruptOn(stop$)] },
  ]),
  stopped$('an abort', undefined, () => {
    const controller = new AbortController();
    return [
      {
        model: scriptedModel(
          concat(
            of(thinking('Hm'), text('I w')),
            then(() => controller.abort()),
          ),
        ),
      },
      { signal: controller.signal },
    ];
  }),
  of$('a sub-agent', 'Above.', () => ({
    name: 'editor',
    model: scriptedModel(
      [text('I ask. '), toolCall('ask', { n: 1 }, 'w'), toolCall('ask', { n: 2 }, 'v')],
      [text('Above.')],
    ),
    tools: [asks],
  })),
  {
    name: 'steps, the last of which speaks',
    stream$: (options) =>
      asAgent(sequential(finder(), careful()), { name: 'team' }).stream$('Oslo?', options),
    answer: 'Rain in Oslo.',
  },
  {
    name: 'steps whose answer was edited',
    stream$: (options) =>
      asAgent(sequential(careful()), {
        use: [
          on(
            'postCall',
            map((event) => ({
              ...event,
              reply: { ...event.reply, content: [textBlock('Edited.')] },
            })),
          ),
        ],
      }).stream$('?', options),
    answer: 'Edited.',
  },
  {
    name: 'steps whose answer was stopped',
    stream$: (options) =>
      asAgent(sequential(careful()), {
        use: [
          on(
            'postCall',
            filter(() => false),
          ),
        ],
      }).stream$('?', options),
    answer: 'Stopped.',
  },
  of$('a tool that speaks', 'Above.', () => ({
    name: 'editor',
    model: scriptedModel(
      [text('I ask. '), toolCall('ask', { n: 1 }, 'w'), toolCall('ask', { n: 2 }, 'v')],
      [text('Above.')],
    ),
    tools: [
      tool({
        name: 'ask',
        description: 'Asks.',
        input: jsonSchema({ type: 'object' }),
        exclusive: true,
        run: (_input, parent) =>
          asAgent(sequential(careful()), { name: 'team' })
            .call$('?', speaking({ parent }))
            .pipe(map((reply) => textOf(reply))),
      }),
    ],
  })),
  {
    name: 'a conversation that moves',
    stream$: (options) =>
      handoff({
        agents: [
          {
            agent: createAgent({
              name: 'porter',
              model: scriptedModel([text('One moment. '), toolCall('transfer_to_careful')]),
            }),
            description: 'Greets.',
          },
          { agent: careful(), description: 'Knows the weather.' },
        ],
      }).stream$('Oslo?', options),
    answer: 'Rain in Oslo.',
  },
  {
    name: 'steps that do not speak',
    stream$: (options) =>
      asAgent(
        sequential(
          careful(),
          map(() => 'Said otherwise.'),
        ),
      ).stream$('?', options),
    answer: 'Said otherwise.',
  },
  of$('a sub-agent that fails', 'Above all the same.', () => ({
    name: 'editor',
    model: scriptedModel([toolCall('fail', {}, 'f')], [text('Above all the same.')]),
    tools: [
      tool({
        name: 'fail',
        description: 'Asks one that fails.',
        run: (_input, context) =>
          createAgent({ name: 'failing', model: scriptedModel(fails('server', text('Bel'))) })
            .call$('?', { parent: context })
            .pipe(map((reply) => textOf(reply))),
      }),
    ],
  })),
  of$('structured output', '{"city":"Oslo","days":[1,2]}', () => ({
    model: scriptedModel([text('{"city":"Oslo",'), text('"days":[1,2]}')]),
    use: [
      output(
        jsonSchema({
          type: 'object',
          properties: { city: { type: 'string' }, days: { type: 'array' } },
          required: ['city'],
        }),
      ),
    ],
  })),
  of$('a large answer', longText.join(''), () => ({
    model: scriptedModel([toolCall('big', {}, 'b')], longText.map(text)),
    tools: [
      tool({
        name: 'big',
        description: 'Gives much.',
        run: () => toolOutput({ content: 'x'.repeat(15_000), details: { all: longText } }),
      }),
    ],
  })),
  of$(
    'a message that is begun anew',
    'Second.',
    () => ({
      model: retry(
        scriptedModel(
          fails('connection', thinking('a'), text('First, '), ...streamed('t', 'weather', '{"a')),
          [text('Second.'), finish()],
        ),
        { retryPartial: true, minMs: 0 },
      ),
    }),
    onAsap,
  ),
  of$('a message that is asked for again', 'Better.', () => ({
    model: scriptedModel(
      [text('Bad. '), toolCall('weather', { city: 'a' }, 'a')],
      [text('Better.')],
    ),
    tools: [weather],
    use: [
      on(
        'postReasoning',
        map((event) => (textOf(event.message) === 'Bad. ' ? { ...event, again: secret } : event)),
      ),
    ],
  })),
  of$('an empty answer, and a reminder', 'Here.', () => ({
    model: scriptedModel([thinking('Hm.')], [text('Here.')]),
  })),
  of$(
    'a fallback',
    'From another.',
    () => ({
      model: fallback(
        retry(scriptedModel(fails('server'), fails('server')), { attempts: 2, minMs: 0 }),
        scriptedModel([text('From another.')]),
      ),
    }),
    onAsap,
  ),
  of$('an edited answer', 'A mask: ***.', () => ({
    model: scriptedModel([thinking('Hm.'), text(`A mask: ${secret}.`)]),
    use: [
      on(
        'postReasoning',
        map((event) => ({
          ...event,
          message: { ...event.message, content: [textBlock('A mask: ***.')] },
        })),
      ),
    ],
  })),
  of$('an edited reply', 'Edited.', () => ({
    model: scriptedModel([text('Not yet.')]),
    use: [
      on(
        'postCall',
        map((event) => ({ ...event, reply: { ...event.reply, content: [textBlock('Edited.')] } })),
      ),
    ],
  })),
  of$('an answer that has got a postscript', 'Yes. No warranty.', () => ({
    model: scriptedModel([text('Yes.')]),
    use: [
      on(
        'postReasoning',
        map((event) => ({
          ...event,
          message: {
            ...event.message,
            content: [...event.message.content, textBlock(' No warranty.')],
          },
        })),
      ),
    ],
  })),
  of$('a message edited before its tools', 'Fine.', () => ({
    model: scriptedModel(
      [text('Bad.'), toolCall('weather', { city: 'Oslo' }, 'a'), toolCall('broken', {}, 'b')],
      [text('Fine.')],
    ),
    tools: [weather, broken],
    use: [
      on(
        'postReasoning',
        map((event) => ({
          ...event,
          message: {
            ...event.message,
            content: event.message.content.flatMap((block): readonly AssistantBlock[] => {
              if (block.type === 'text') return [textBlock('Fine.')];
              return block.type === 'tool_call' && block.name === 'broken' ? [] : [block];
            }),
          },
        })),
      ),
    ],
  })),
  of$('a use of a tool that is edited twice', 'So.', () => ({
    model: scriptedModel([toolCall('weather', { city: 'Oslo' }, 'a')], [text('So.')]),
    tools: [weather],
    use: [
      on(
        'postReasoning',
        map((event) => ({
          ...event,
          message: {
            ...event.message,
            content: event.message.content.map((block) =>
              block.type === 'tool_call' ? { ...block, input: { city: 'Rome' } } : block,
            ),
          },
        })),
      ),
      on(
        'preActing',
        map((event) => ({
          ...event,
          toolCall: { ...event.toolCall, name: 'weather', input: { city: 'Paris' } },
        })),
      ),
    ],
  })),
  of$('a vetoed answer', 'Stopped.', () => ({
    model: scriptedModel([text('Secret.')]),
    use: [
      on(
        'postReasoning',
        filter(() => false),
      ),
    ],
  })),
  of$('a vetoed reply', 'Stopped.', () => ({
    model: scriptedModel([text('Secret.')]),
    use: [
      on(
        'postCall',
        filter(() => false),
      ),
    ],
  })),
  of$("a tool's final answer", 'That is it.', () => ({
    model: scriptedModel([text('I do. '), toolCall('final', {}, 'f')]),
    tools: [
      tool({
        name: 'final',
        description: 'Answers.',
        run: () => toolOutput({ content: 'That is it.', finalAnswer: true }),
      }),
    ],
  })),
  of$(
    'a closing answer',
    'In short: rain.',
    () => ({
      model: scriptedModel(
        [toolCall('weather', { city: 'Oslo' })],
        [text('In short: '), text('rain.'), toolCall('weather', { city: 'Rome' })],
      ),
      tools: [weather],
    }),
    () => ({ limits: { maxIterations: 1 } }),
  ),
  of$(
    'what there was',
    'I look.',
    () => ({
      model: scriptedModel([text('I look.'), toolCall('weather', { city: 'Oslo' })]),
      tools: [weather],
    }),
    () => ({ limits: { maxIterations: 1, onLimit: 'partial' } }),
  ),
  of$('an answer that was cut, and its tools', 'As long as i', () => ({
    model: scriptedModel([
      text('As long as i'),
      ...streamed('a', 'weather', '{"city":"O'),
      finish('length'),
    ]),
    tools: [weather],
  })),
  of$('media', 'Look.', () => ({
    model: scriptedModel(
      [toolCall('photo', {}, 'p')],
      [
        text('Look.'),
        { type: 'block', block: { type: 'image', source: { kind: 'url', url: 'https://a.b/c' } } },
      ],
    ),
    tools: [
      tool({
        name: 'photo',
        description: 'Takes one.',
        run: () =>
          toolOutput({
            content: [
              textBlock('Click.'),
              {
                type: 'image',
                source: { kind: 'base64', mediaType: 'image/png', data: 'iVBORw0KGgo=' },
              },
            ],
          }),
      }),
    ],
  })),
  of$('thinking between texts', 'One. Two.', () => ({
    model: scriptedModel([
      text('One. '),
      thinking('Hm.'),
      { type: 'thinking', text: '', signature: 's' },
      text('Two.'),
    ]),
  })),
  of$('hostile names and values', 'Do😀ne.', () => ({
    model: scriptedModel(
      [
        { type: 'toolCall', id: '__proto__', json: '{"__proto__":{"polluted":1}}' },
        {
          type: 'toolCall',
          id: 'constructor',
          name: 'odd',
          json: '{"constructor":{"prototype":1}}',
        },
        toolCall('odd', { constructor: 'Ferrari', lone: '\ud83d' }, '../../x'),
        { type: 'toolCall', index: 9, id: 'n', json: '{"late":' },
        { type: 'toolCall', index: 9, id: 'n', name: '__proto__', json: '1}' },
      ],
      [text('Do\ud83d'), text('\ude00ne.')],
    ),
    tools: [
      tool({
        name: 'odd',
        description: 'Gives odd values.',
        input: jsonSchema({ type: 'object' }),
        run: () => {
          const cycle: Record<string, unknown> = { n: 1n };
          cycle['cycle'] = cycle;
          return from([
            cycle,
            undefined,
            () => 1,
            toolOutput({ content: 'ok', details: parsedJson('{"__proto__":1,"a":2}') }),
          ]);
        },
      }),
    ],
  })),
];
