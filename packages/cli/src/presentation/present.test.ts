import { describe, expect, it } from '@jest/globals';
import {
  type AgentEvent,
  type AgentOptions,
  type CallOptions,
  createAgent,
  interruptOn,
  MillraceError,
  on,
  sequential,
  textOf,
  tool,
} from 'millrace';
import { insertBefore, reasoning } from 'millrace/phases';
import { analyseTask, withPlan } from 'millrace/planning';
import { jsonSchema } from 'millrace/schema';
import { asAgent } from 'millrace/teams';
import { cost, type PriceList } from 'millrace/traffic';
import {
  type MarbleHelpers,
  marbles,
  scriptedModel,
  text,
  thinking,
  toolCall,
} from 'millrace/testing';
import {
  concat,
  delay,
  EMPTY,
  map,
  mergeMap,
  NEVER,
  type Observable,
  of,
  Subject,
  throwError,
  timer,
} from 'rxjs';
import { present, type PresentOptions } from './present.js';
import { createTheme } from './theme.js';

/** What is printed of a call in virtual time, but for the picture. */
const printedOf = (
  call: (helpers: MarbleHelpers) => Observable<AgentEvent>,
  how?: PresentOptions,
) => {
  const texts: string[] = [];
  marbles((helpers) => {
    call(helpers)
      .pipe(present(how))
      .subscribe({ next: (it) => texts.push(it), error: () => undefined });
  });
  const [said = ''] = texts.join('').split('\n\nreasoning ');
  return `${said}\n`;
};

const printed = (agent: AgentOptions, options: CallOptions = {}, how?: PresentOptions) =>
  printedOf(({ scheduler }) => createAgent(agent).stream$('?', { scheduler, ...options }), how);

const clock = tool({
  name: 'clock',
  description: 'Tells the time.',
  input: jsonSchema({ type: 'object', properties: { place: { type: 'string' } } }),
  run: (_input, { scheduler }) =>
    of('noon').pipe(
      delay(20, scheduler),
      map((it) => ({ it })),
    ),
});

const list = tool({
  name: 'list',
  description: 'Lists things.',
  run: () => ['first', '', 'second', 'x'.repeat(100), 'fourth', 'fifth'].join('\n'),
});

const broken = tool({
  name: 'broken',
  description: 'Fails.',
  run: () => {
    throw new Error('The wheel is stuck.');
  },
});

describe('present', () => {
  it('H1: the words of a sub-agent that speaks are the answer, and are said once', () => {
    const out = printedOf(({ scheduler }) =>
      asAgent(
        sequential(
          createAgent({ name: 'researcher', model: scriptedModel([text('Facts.')]) }),
          createAgent({ name: 'writer', model: scriptedModel([text('Prose.')]) }),
        ),
        { name: 'team' },
      ).stream$('?', { scheduler }),
    );
    expect(out).toContain('    researcher: Facts.\n\nProse.\n\nanswered');
  });

  it('shows thinking, tools, the answer as it streams, and what it took', () => {
    const model = scriptedModel(
      [
        thinking('The time\n'),
        thinking('is asked.'),
        toolCall('clock', { place: 'Oslo' }),
        { type: 'usage', usage: { inputTokens: 20, outputTokens: 5 } },
      ],
      [text('It is'), text(' noon.\nOr so.')],
    );
    expect(printed({ model, tools: [clock] })).toBe(`  The time
  is asked.
  → clock place: "Oslo"
  … clock: {"it":"noon"}
  ← clock {"it":"noon"} (20 ms)

It is noon.
Or so.

answered in 20 ms · 2 iterations · 1 tool call · 20 tokens in, 5 out
`);
  });

  it('shows what a call costs, if its prices are known', () => {
    const spent = { type: 'usage', usage: { inputTokens: 2_000, outputTokens: 500 } } as const;
    const shown = (prices: PriceList['prices']) =>
      printed({
        model: scriptedModel([text('Yes.'), spent]),
        use: [cost({ currency: 'USD', date: '2026-11-30', prices })],
      });
    expect(shown({ scripted: { input: 0.25, output: 2 } })).toContain(' out · 0.0015 USD\n');
    expect(shown({})).toContain(' out · at least 0.00 USD\n');
  });

  it('ends with a picture of the call', () => {
    const texts: string[] = [];
    marbles(({ model, scheduler }) => {
      createAgent({ model: model('--t-(tf)|') })
        .stream$('?', { scheduler })
        .pipe(present())
        .subscribe((it) => texts.push(it));
    });
    expect(texts.at(-1)).toBe(`

answered in 8 ms · 1 iteration · 0 tool calls · 0 tokens in, 0 out

reasoning  ───────────────t──────────────t─────────────────────────────|
           0                                                        8 ms
t text  | end
`);
  });

  it('shows text before tools as a paragraph of its own', () => {
    const model = scriptedModel([text('Let me see.'), toolCall('list')], [text('Done.')]);
    expect(printed({ model, tools: [list] })).toBe(`
Let me see.
  → list
  ← list (0 ms)
    first
    second
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
    … 2 more lines

Done.

answered in 0 ms · 2 iterations · 1 tool call · 0 tokens in, 0 out
`);
  });

  it('shows failures of tools, and arguments that are no JSON', () => {
    const model = scriptedModel(
      [toolCall('broken'), { type: 'toolCall', name: 'list', json: '{"a":' }],
      [text('Done.')],
    );
    expect(printed({ model, tools: [broken, list] })).toBe(`  → broken
  ✗ broken Failed: The wheel is stuck. (0 ms)
  → list {"a":
  ✗ list (0 ms)
    The arguments for list are not a JSON object: {"a": (The JSON is incomplete: a string or a bracket is not closed)

Done.

answered in 0 ms · 2 iterations · 2 tool calls · 0 tokens in, 0 out
`);
  });

  it('shows vetoes, failed handlers, retries, fallbacks and warnings, one line each', () => {
    const error = new MillraceError('rateLimited', 'slow down');
    const model = scriptedModel(
      (_request, { report }) => {
        report({
          type: 'modelRetry',
          model: 'big',
          attempt: 1,
          attempts: 3,
          waitMs: 1_000,
          error,
        });
        report({ type: 'modelFallback', from: 'big', to: 'small', error });
        report({ type: 'warning', message: 'top_p is\nnot known' });
        return [toolCall('list')];
      },
      [text('Done.')],
    );
    const interceptors = [
      on(
        'preActing',
        mergeMap(() => EMPTY),
        { name: 'guard' },
      ),
      on(
        'postReasoning',
        mergeMap(() => throwError(() => new Error('lost'))),
        {
          name: 'log',
          failOpen: true,
        },
      ),
    ];
    expect(printed({ model, tools: [list], use: interceptors }))
      .toBe(`  • big: attempt 1 of 3 failed, retry in 1.0 s: slow down
  • big failed, small takes over: slow down
  • top_p is not known
  • Error ignored at postReasoning: The interceptor log failed: lost.
  • guard vetoed preActing.
  → list
  ✗ list Not run: this tool call was rejected. (0 ms)

Done.
  • Error ignored at postReasoning: The interceptor log failed: lost.

answered in 0 ms · 2 iterations · 1 tool call · 0 tokens in, 0 out
`);
  });

  it('says that a message was discarded, and shows the next one', () => {
    const model = scriptedModel([
      text('Hal'),
      { type: 'restart', why: 'the connection was lost' },
      text('Hello.'),
    ]);
    expect(printed({ model })).toBe(`
Hal
  • The message above was discarded: the connection was lost

Hello.

answered in 0 ms · 1 iteration · 0 tool calls · 0 tokens in, 0 out
`);
  });

  it('does not call void what an interrupt cut', () => {
    const interrupt$ = new Subject<void>();
    const model = scriptedModel(concat(of(thinking('Hm')), NEVER));
    const texts: string[] = [];
    createAgent({ model })
      .stream$('?', { use: [interruptOn(interrupt$)] })
      .pipe(present())
      .subscribe((text) => texts.push(text));
    interrupt$.next();
    expect(texts.join('')).toMatch(/^ {2}Hm\n\nInterrupted\.\n\ninterrupted after /);
  });

  it('shows an answer that no one streamed', () => {
    const model = scriptedModel([text('Hello.')]);
    const polite = on(
      'postCall',
      map((event) => ({
        ...event,
        reply: { ...event.reply, content: [{ type: 'text' as const, text: 'Good day.' }] },
      })),
    );
    expect(printed({ model, use: [polite] })).toBe(`
Hello.

Good day.

answered in 0 ms · 1 iteration · 0 tool calls · 0 tokens in, 0 out
`);
  });

  it('says that the limit was reached', () => {
    const model = scriptedModel([toolCall('list')], [text('So far so good.')]);
    expect(printed({ model, tools: [list] }, { limits: { maxIterations: 1 } })).toBe(`  → list
  ← list (0 ms)
    first
    second
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
    … 2 more lines
  • The limit is reached: asking for an answer without tools.

So far so good.

ended at the iteration limit after 0 ms · 1 iteration · 1 tool call · 0 tokens in, 0 out
`);
  });

  it('keeps the partial answer of an interrupted call', () => {
    const call = ({ model, scheduler }: MarbleHelpers) =>
      createAgent({ model: model('--t-t-t-t-(tf)|') }).stream$('?', {
        scheduler,
        use: [interruptOn(timer(5, scheduler))],
      });
    expect(printedOf(call)).toBe(`
tt

interrupted after 5 ms · 1 iteration · 0 tool calls · 0 tokens in, 0 out
`);
  });

  it('leaves it to the caller to report an error, and closes the line', () => {
    const broke$ = concat(
      of(text('The wh')),
      throwError(() => new MillraceError('server', 'down')),
    );
    expect(printed({ model: scriptedModel(broke$) })).toBe('\nThe wh\n');
  });

  it('sets sub-agents off, and does not take their answer for that of the call', () => {
    const helper = createAgent({
      name: 'helper',
      model: scriptedModel([thinking('Hm.'), toolCall('list')], [text('It is\nnoon.')]),
      tools: [list],
    });
    const ask = tool({
      name: 'ask',
      description: 'Asks the helper.',
      run: (_input, context) => helper.call$('?', { parent: context }).pipe(map(textOf)),
    });
    const model = scriptedModel([toolCall('ask')], [text('Noon.')]);
    expect(printed({ model, tools: [ask] })).toBe(`  → ask
    Hm.
    → list
    ← list (0 ms)
      first
      second
      xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
      … 2 more lines
    helper: It is
    noon.
  … ask: It is noon.
  ← ask (0 ms)
    It is
    noon.

Noon.

answered in 0 ms · 2 iterations · 1 tool call · 0 tokens in, 0 out
`);
  });

  it('shows the errors of tools, sub-agents and retries without keys', () => {
    const key = 'sk-of-this-test-0123456789abcdef';
    const refuse = () => {
      throw new MillraceError('auth', `The key ${key} is refused.`);
    };
    const helper = createAgent({ name: 'helper', model: scriptedModel(refuse) });
    const ask = tool({
      name: 'ask',
      description: 'Asks the helper.',
      run: (_input, context) => helper.call$('?', { parent: context }),
    });
    const leak = tool({
      name: 'leak',
      description: 'Leaks.',
      run: () => {
        throw new Error(`No access: Authorization: Bearer ${key}`);
      },
    });
    const model = scriptedModel([toolCall('ask'), toolCall('leak')], [text('No.')]);
    const all = printed({ name: 'lead', model, tools: [ask, leak] });
    expect(all).toContain('    • lead/helper failed (auth): The key [redacted] is refused.\n');
    expect(all).toContain('Authorization: Bearer [redacted]');
    expect(all).not.toContain(key);
  });

  it('lets nothing through that steers a terminal', () => {
    const model = scriptedModel(
      [toolCall('shout', { '\u001b]0;a': '\u001b[2J' })],
      [thinking('\u001b[1m'), text('a\u001b[31mb\u0007\r\nc\u202ed')],
    );
    const shout = tool({
      name: 'shout',
      description: 'Shouts.',
      input: jsonSchema({ type: 'object' }),
      run: () => '\u001b[5mHEY\u009b0m',
    });
    const all = printed({ model, tools: [shout] });
    // eslint-disable-next-line no-control-regex
    expect(all).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
    expect(all).toContain('a[31mb\ncd');
  });

  it('paints if the theme has colour', () => {
    const output = { isTTY: true };
    const theme = createTheme({ env: {}, platform: 'linux', output, color: true });
    const model = scriptedModel([thinking('Hm.'), toolCall('list')], [text('Done.')]);
    const all = printed({ model, tools: [list] }, {}, { theme, unit: 'words' });
    expect(all).toContain('\u001b[2m  Hm.\u001b[22m');
    expect(all).toContain('\u001b[36m→\u001b[39m \u001b[1mlist\u001b[22m');
    expect(all).toContain('\nDone.\n');
    expect(all).toContain('0 words in, 0 out');
  });

  it('G1: shows what is thought beside the loop, and the plan as it stands', () => {
    const model = scriptedModel(
      [text('First a plan.')],
      [toolCall('create_plan', { goal: 'Bread.', steps: ['Mill', 'Bake'] })],
      [text('Done.')],
    );
    const agent = withPlan({ model, use: [insertBefore(reasoning, analyseTask())] });
    const said = printed(agent);
    expect(said).toContain('  • Planning: analyseTask.\n  First a plan.\n');
    expect(said).toContain('  • Goal: Bread.\n  • 1. [todo] Mill\n  • 2. [todo] Bake\n');
    expect(said).toContain('\nDone.\n');
  });
});
