import { describe, expect, it, jest } from '@jest/globals';
import { delay, map, NEVER, of, throwError, timer } from 'rxjs';
import {
  type CallOptions,
  createAgent,
  interruptOn,
  on,
  selectTools,
  tool,
  toolGroup,
} from '../index.js';
import type { ToolSelection } from './select-tools.js';
import { marbles, record, scriptedModel, text, toolCall } from '../testing/index.js';

const tools = ['weather', 'mail', 'calendar', 'files'].map((name) =>
  tool({ name, description: `Works with ${name}.`, run: () => `${name} ran` }),
);

/** Which tools the model was shown, and what was warned of. */
const shown = async (selection: ToolSelection, options: CallOptions<undefined> = {}) => {
  const model = scriptedModel([text('done')]);
  const agent = createAgent({ model, tools, use: [selectTools(selection)] });
  const events = await record(agent.stream$('Will it rain?', options));
  return {
    names: (model.requests[0]?.tools ?? []).map(({ name }) => name).join(),
    warnings: events.flatMap((event) => (event.type === 'warning' ? [event.message] : [])),
  };
};

describe('T11: a selection of tools', () => {
  it.each<[string, ToolSelection, string]>([
    ['those that are picked', { select: () => ['mail', 'weather'] }, 'weather,mail'],
    ['those that a Promise gives', { select: () => Promise.resolve(['files']) }, 'files'],
    ['those that an Observable gives first', { select: () => of(['files'], ['mail']) }, 'files'],
    ['all, where nothing is picked', { select: () => [] }, 'weather,mail,calendar,files'],
    ['all, where nothing known is picked', { select: () => ['x'] }, 'weather,mail,calendar,files'],
    ['those that are pinned, too', { select: () => ['mail'], pinned: ['files'] }, 'mail,files'],
    [
      'no more than maxTools, the best first',
      { select: () => ['mail', 'files', 'weather'], maxTools: 2 },
      'mail,files',
    ],
    [
      'what is pinned, whatever maxTools says',
      { pinned: ['mail', 'files'], maxTools: 1 },
      'mail,files',
    ],
  ])('shows %s', async (_, selection, names) => {
    expect((await shown(selection)).names).toBe(names);
  });

  it('warns of what maxTools has cut', async () => {
    const { names, warnings } = await shown({ maxTools: 3, pinned: ['files'] });
    expect(names).toBe('weather,mail,files');
    expect(warnings).toEqual(['Only 3 of 4 tools can be shown. Hidden: calendar.']);
  });

  it.each<[string, ToolSelection['select'], string]>([
    ['an error', () => throwError(() => new Error('no index')), 'no index'],
    [
      'a throw',
      () => {
        throw new Error('no index');
      },
      'no index',
    ],
  ])('shows all after %s, and warns', async (_, select, why) => {
    expect(await shown(select === undefined ? {} : { select })).toEqual({
      names: 'weather,mail,calendar,files',
      warnings: [`The tool selector failed, so all tools are shown: ${why}`],
    });
  });

  it('is asked once a call, with what was asked and what can be picked', async () => {
    const select = jest.fn(() => ['weather']);
    const model = scriptedModel([toolCall('weather')], [text('done')]);
    const agent = createAgent({ model, tools });
    await agent.call('Will it rain?', { use: [selectTools({ select, pinned: ['mail'] })] });
    expect(select.mock.calls).toMatchObject([
      [
        {
          text: 'Will it rain?',
          tools: [{ name: 'weather' }, { name: 'calendar' }, { name: 'files' }],
        },
      ],
    ]);
    expect(model.requests).toHaveLength(2);
  });

  it('does not hide a tool that the call forces, or tools that come later', async () => {
    const select = () => ['mail'];
    expect((await shown({ select }, { request: { toolChoice: { name: 'files' } } })).names).toBe(
      'mail,files',
    );
    const model = scriptedModel([toolCall('manage_tools', { activate: ['late'] })], [text('done')]);
    const late = toolGroup({
      name: 'late',
      description: 'Comes later.',
      tools: [tool({ name: 'later', description: 'Is late.', run: () => 1 })],
    });
    await createAgent({ model, tools: [...tools, late] }).call('?', {
      use: [selectTools({ select })],
    });
    expect(model.requests.map((request) => request.tools?.map(({ name }) => name).join())).toEqual([
      'mail,manage_tools',
      'mail,later,manage_tools',
    ]);
  });

  it('hides a tool also from being run', async () => {
    const model = scriptedModel([toolCall('files')], [text('done')]);
    const reply = await createAgent({ model, tools }).call('?', {
      use: [selectTools({ select: () => ['mail'] })],
    });
    expect(reply.toolCalls[0]?.output).toBe("No tool is named 'files'. The tools are: mail.");
  });

  it('is waited for, and cut by an interrupt', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const select = () => of(['mail']).pipe(delay(5, scheduler));
      const agent = createAgent({ model: model(['(tf|)']), tools });
      const reason$ = agent
        .call$('?', { scheduler, use: [selectTools({ select })] })
        .pipe(map(({ reason }) => reason));
      expectObservable(reason$).toBe('-----(r|)', { r: 'answer' });
      const cut$ = agent
        .call$('?', {
          scheduler,
          use: [selectTools({ select: () => NEVER }), interruptOn(timer(3, scheduler))],
        })
        .pipe(map(({ reason }) => reason));
      expectObservable(cut$).toBe('---(r|)', { r: 'interrupted' });
    });
  });

  it.each([[{ maxTools: 0 }], [{ pinned: 'mail' }], [{ select: ['mail'] }], [{ top: 3 }]])(
    'refuses %j',
    (selection) => {
      expect(() => selectTools(selection as never)).toThrow(/selectTools\(\)/);
    },
  );

  it('leaves preReasoning the last word', async () => {
    const model = scriptedModel([text('done')]);
    const none = on(
      'preReasoning',
      map(({ options: { tools: _tools, ...options }, ...event }) => ({ ...event, options })),
    );
    await createAgent({ model, tools, use: [none] }).call('Will it rain?');
    expect(model.requests[0]?.tools).toBeUndefined();
  });
});
