import { describe, expect, it } from '@jest/globals';
import { type AgentEvent, createAgent, interruptOn, MillraceError, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import {
  finish,
  type MarbleHelpers,
  marbles,
  scriptedModel,
  text,
  thinking,
  toolCall,
} from 'millrace/testing';
import { concat, concatMap, delay, NEVER, type Observable, of, throwError, timer } from 'rxjs';
import { marblePicture } from './marble-picture.js';
import { createTheme } from '../presentation/theme.js';

/** Records a call in virtual time. */
const recorded = (call: (helpers: MarbleHelpers) => Observable<AgentEvent>) => {
  const events: AgentEvent[] = [];
  marbles((helpers) => {
    call(helpers).subscribe({ next: (event) => events.push(event), error: () => undefined });
  });
  return events;
};

const letters = {
  h: thinking('h'),
  t: text('t'),
  a: toolCall('alpha'),
  b: toolCall('beta'),
  f: finish(),
};

const alpha = tool({
  name: 'alpha',
  description: 'Takes 60 ms.',
  run: (_input, { scheduler }) => of('done').pipe(delay(60, scheduler)),
});

const beta = tool({
  name: 'beta',
  description: 'Fails after 40 ms, and some progress.',
  run: (_input, { scheduler }) =>
    concat(
      of('half').pipe(delay(20, scheduler)),
      timer(20, scheduler).pipe(concatMap(() => throwError(() => new Error('no')))),
    ),
});

const tools = [alpha, beta];

const twoTools = ({ model, scheduler }: MarbleHelpers) =>
  createAgent({ model: model(['--h-h-t---(abf)|', '---t-t-t-t-(tf)|'], letters), tools }).stream$(
    '?',
    { scheduler },
  );

const picture = (events: readonly AgentEvent[], width = 60) =>
  `\n${marblePicture(events, { width })}\n`;

describe('marblePicture', () => {
  it('draws nothing of nothing', () => {
    expect(marblePicture([])).toBe('');
  });

  it('draws tools that run at the same time, each in its lane, with progress and errors', () => {
    expect(picture(recorded(twoTools))).toBe(`
reasoning  ─hht─cc─|································─ttttt─|
alpha      ········────────────────────────────────pr|······
beta       ········───────────p─────────✗|··················
           0                                           90 ms
h thought  t text  c tool call  p progress  r result
✗ error  | end
`);
  });

  it('keeps one lane for a tool that runs twice at the same time', () => {
    const call = ({ model, scheduler }: MarbleHelpers) => {
      const later = tool({
        name: 'alpha',
        description: 'Takes as long as it is told.',
        input: jsonSchema({
          type: 'object',
          properties: { ms: { type: 'integer' } },
          required: ['ms'],
        }),
        run: ({ ms }, context) => of('done').pipe(delay(ms, context.scheduler)),
      });
      const values = { a: toolCall('alpha', { ms: 10 }), b: toolCall('alpha', { ms: 30 }) };
      const asked = model(['(abf)|', '--(tf)|'], { ...letters, ...values });
      return createAgent({ model: asked, tools: [later] }).stream$('?', { scheduler });
    };
    expect(picture(recorded(call))).toBe(`
reasoning  cc────|···································─t────|
alpha      ······────────────pr─────────────────────pr|·····
           0                                           41 ms
t text  c tool call  p progress  r result  | end
`);
  });

  it('draws an error at the point at which it ended the call', () => {
    const call = ({ cold, scheduler }: MarbleHelpers) => {
      const broken = new MillraceError('server', 'down');
      const model = scriptedModel(cold('--t--#', letters, broken));
      return createAgent({ model }).stream$('?', { scheduler });
    };
    expect(picture(recorded(call))).toBe(`
reasoning  ───────────────────t───────────────────────────✗|
           0                                            5 ms
t text  ✗ error  | end
`);
  });

  it('draws an interrupt in the lane that it cut', () => {
    const call = ({ model, scheduler }: MarbleHelpers) =>
      createAgent({ model: model('--t-t-t-t-t-t-t-(tf)|', letters) }).stream$('?', {
        scheduler,
        use: [interruptOn(timer(8, scheduler))],
      });
    expect(picture(recorded(call))).toBe(`
reasoning  ────────────t───────────t───────────t───────────!
           0                                            8 ms
t text  ! interrupted
`);
  });

  it('draws an interrupt that cut a tool in the lane of reasoning too', () => {
    const call = ({ model, scheduler }: MarbleHelpers) =>
      createAgent({ model: model('--(af)|', letters), tools }).stream$('?', {
        scheduler,
        use: [interruptOn(timer(12, scheduler))],
      });
    expect(picture(recorded(call))).toBe(`
reasoning  ────────c───────────────|······················!·
alpha      ························───────────────────────✗|
           0                                           12 ms
c tool call  ✗ error  ! interrupted  | end
`);
  });

  it('draws work without an end if the events end early', () => {
    const events = recorded(twoTools).filter(({ type }) => type !== 'postActing');
    expect(picture(events.slice(0, -10))).toBe(`
reasoning  ──────h──────h─────t────────────cc──────────────|
alpha      ················································─
beta       ················································─
           0                                           15 ms
h thought  t text  c tool call  | end
`);
  });

  it('keeps the order of a call that takes no time', () => {
    const call = ({ scheduler }: MarbleHelpers) => {
      const now = tool({ name: 'now', description: 'Is quick.', run: () => 'done' });
      const model = scriptedModel([thinking('h'), toolCall('now')], [text('t'), text('t')]);
      return createAgent({ model, tools: [now] }).stream$('?', { scheduler });
    };
    expect(picture(recorded(call))).toBe(`
reasoning  hc|t|············································
now        ·r|··············································
           0                                            0 ms
h thought  t text  c tool call  r result  | end
`);
  });

  it('shows the most important of events that fall together in a long call', () => {
    const turns = Array.from({ length: 99 }, () => '-h-t-(af)|');
    const call = ({ model, scheduler }: MarbleHelpers) =>
      createAgent({ model: model([...turns, '--(tf)|'], letters), tools }).stream$('?', {
        scheduler,
        limits: { maxIterations: 100 },
      });
    expect(picture(recorded(call))).toBe(`
reasoning  ccccccccccccccccccccccccccccccccccccccccccccccccc
alpha      rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr
           0                                           6.8 s
c tool call  r result
`);
  });

  it('shows the lanes of sub-agents under their names', () => {
    const call = ({ model, scheduler }: MarbleHelpers) => {
      const inner = createAgent({
        name: 'inner',
        model: model(['-(af)|', '-(tf)|'], letters),
        tools,
      });
      const beta = tool({
        name: 'beta',
        description: 'Asks another agent.',
        run: (_input, context) => inner.call$('?', { parent: context }),
      });
      const outer = model(['--(bf)|', '--(tf)|'], letters);
      return createAgent({ name: 'outer', model: outer, tools: [beta] }).stream$('?', {
        scheduler,
      });
    };
    expect(picture(recorded(call))).toBe(`
reasoning        ─c─|····································t─|
beta             ···────────────────────────────────────pr|·
inner/reasoning  ···─c─|······························t─|···
inner/alpha      ······──────────────────────────────pr|····
                 0                                     82 ms
t text  c tool call  p progress  r result  | end
`);
  });

  it.each([0, 40, 72, 120])('fits into %d columns', (width) => {
    const lines = marblePicture(recorded(twoTools), { width }).split('\n');
    expect(Math.max(...lines.map((line) => line.length))).toBe(Math.max(width, 32));
  });

  it('shortens the names of lanes that take too much room', () => {
    const name = 'a_tool_with_a_name_that_is_much_too_long';
    const call = ({ scheduler }: MarbleHelpers) => {
      const long = tool({ name, description: 'Has a long name.', run: () => timer(9, scheduler) });
      const model = scriptedModel([toolCall(name)], [text('t')]);
      return createAgent({ model, tools: [long] }).stream$('?', { scheduler });
    };
    expect(picture(recorded(call))).toBe(`
reasoning             c|··································t|
a_tool_with_a_name_~  ───────────────────────────────────pr|
                      0                                 9 ms
t text  c tool call  p progress  r result  | end
`);
  });

  it('keeps to ASCII if the terminal has nothing more', () => {
    const drawn = marblePicture(recorded(twoTools), { width: 60, unicode: false });
    expect(drawn).toMatch(/^[\n -~]*$/);
    expect(drawn).toContain('x|');
  });

  it('colours signs, and nothing else', () => {
    const events = recorded(twoTools);
    const output = { isTTY: true, columns: 60 };
    const theme = createTheme({ env: {}, platform: 'linux', output, color: true });
    const drawn = marblePicture(events, theme);
    expect(drawn).toContain('\u001b[31m✗\u001b[39m');
    // eslint-disable-next-line no-control-regex
    expect(drawn.replaceAll(/\u001b\[\d+m/g, '')).toBe(marblePicture(events, { width: 60 }));
  });

  it('draws a call that never ended by itself', () => {
    const call = ({ scheduler }: MarbleHelpers) =>
      createAgent({ model: scriptedModel(NEVER) }).stream$('?', { scheduler });
    expect(marblePicture(recorded(call))).toContain('reasoning  ───');
  });
});
