import { describe, expect, it } from '@jest/globals';
import { BehaviorSubject, EMPTY, map, Observable, Subject, throwError } from 'rxjs';
import {
  addTools,
  createAgent,
  interruptOn,
  type Layer,
  prepare,
  textOf,
  tool,
  type Tool,
  type ToolContext,
  toolGroup,
  selectTools,
} from '../index.js';
import { record, scriptedModel, text, toolCall } from '../testing/index.js';
import { hideTools } from '../call/index.js';
import { sessions } from './sessions/index.js';

const named = (name: string, run: (context: ToolContext) => unknown = () => `${name} ran`): Tool =>
  tool({ name, description: `Is ${name}.`, run: (_input, context) => run(context) });

const declared = (model: ReturnType<typeof scriptedModel>) =>
  model.requests.map(({ tools = [] }) => tools.map(({ name }) => name));

describe('addTools', () => {
  it('T10: are beside those of the agent, for this call only', async () => {
    const model = scriptedModel([toolCall('own')], [text('a')], [text('b')]);
    const agent = createAgent({ model, tools: [named('old')] });
    const session = sessions(agent).open('s');
    const reply = await session.call('?', { use: [addTools(named('own'))] });
    expect(reply.toolCalls).toMatchObject([{ name: 'own', output: 'own ran' }]);
    await session.call('?');
    expect(declared(model)).toEqual([['old', 'own'], ['old', 'own'], ['old']]);
    expect(session.toolkit.names).toEqual(['old']);
  });

  it('T10: stand beside the tools of the call, too', async () => {
    const model = scriptedModel([text('a')]);
    const agent = createAgent({ model, tools: [named('old')] });
    await agent.call('?', { tools: [named('new')], use: [addTools(named('own'))] });
    expect(declared(model)).toEqual([['new', 'own']]);
  });

  it('I14: a name that is there already is an error', async () => {
    const model = scriptedModel([text('a')]);
    const agent = createAgent({
      model,
      tools: [toolGroup({ name: 'g', description: 'G.', tools: [named('old')] })],
    });
    await expect(agent.call('?', { use: [addTools(named('old'))] })).rejects.toMatchObject({
      code: 'config',
      message: "Two tools are named 'old'. Rename one of them, or drop it.",
    });
    await expect(agent.call('?', { use: [addTools(named('a'), named('a'))] })).rejects.toThrow(
      "Two tools are named 'a'",
    );
    expect(model.requests).toEqual([]);
  });

  it('T10: what the call changes of its session stays, and its own tools do not', async () => {
    const changes = named('changes', ({ toolkit }) => {
      toolkit.add(named('late'));
      toolkit.remove('own');
      toolkit.replace(named('old', () => 'replaced'));
      return toolkit.names.join();
    });
    const model = scriptedModel([toolCall('changes')], [text('a')], [text('b')]);
    const session = sessions(createAgent({ model, tools: [named('old'), changes] })).open('s');
    const reply = await session.call('?', { use: [addTools(named('own'), named('kept'))] });
    expect(reply.toolCalls[0]?.output).toBe('old,changes,kept,late');
    await session.call('?');
    expect(declared(model).slice(1)).toEqual([
      ['old', 'changes', 'kept', 'late'],
      ['old', 'changes', 'late'],
    ]);
  });

  it('T10: a call sees what its session gets meanwhile, but for what has the name of its own', async () => {
    const model = scriptedModel([toolCall('own')], [toolCall('own')], [text('a')], [text('b')]);
    const agent = createAgent({ model, tools: [named('old')] });
    const session = sessions(agent).open('s');
    const own = named('own', () => {
      if (!session.toolkit.names.includes('own')) session.toolkit.add(named('own'), named('new'));
      return 'mine';
    });
    const reply = await session.call('?', { use: [addTools(own)] });
    expect(reply.toolCalls.map(({ output }) => output)).toEqual(['mine', 'mine']);
    await session.call('?');
    expect(declared(model)).toEqual([
      ['old', 'own'],
      ['old', 'new', 'own'],
      ['old', 'new', 'own'],
      ['old', 'own', 'new'],
    ]);
  });

  it('T10: a change by the call keeps what its session got under the name of its own', async () => {
    const model = scriptedModel([toolCall('own')], [text('a')]);
    const session = sessions(createAgent({ model })).open('s');
    const own = named('own', ({ toolkit }) => {
      session.toolkit.add(named('own'));
      toolkit.add(named('late'));
      return toolkit.names.join();
    });
    expect((await session.call('?', { use: [addTools(own)] })).toolCalls[0]?.output).toBe(
      'own,late',
    );
    expect([...session.toolkit.names].sort()).toEqual(['late', 'own']);
  });

  it('T11: no selection hides them', async () => {
    const model = scriptedModel([text('a')]);
    const agent = createAgent({ model, tools: [named('old'), named('older')] });
    await agent.call('?', {
      use: [addTools(named('own')), selectTools({ select: () => ['older'], maxTools: 2 })],
    });
    expect(declared(model)).toEqual([['older', 'own']]);
  });

  it('H6: prepare sees them, and may take them away', async () => {
    const model = scriptedModel([text('a')]);
    const agent = createAgent({
      model,
      use: [
        prepare(
          map((it) => ({
            ...it,
            options: {
              ...it.options,
              tools: (it.options.tools ?? []).filter(({ name }) => name === 'own'),
            },
          })),
        ),
      ],
      tools: [named('old')],
    });
    expect(textOf(await agent.call('?', { use: [addTools(named('own'))] }))).toBe('a');
    expect(declared(model)).toEqual([['own']]);
  });
});

describe('addTools with an Observable of lists', () => {
  it('T10: the call waits for the first list, and follows the latest from the next request on', async () => {
    const lists$ = new Subject<readonly Tool[]>();
    const model = scriptedModel([toolCall('a')], [toolCall('b')], [text('done')]);
    const reply = createAgent({ model, tools: [named('old')] }).call('?', {
      use: [addTools(lists$)],
    });
    expect(model.requests).toEqual([]);
    lists$.next([named('a', () => lists$.next([named('b')]))]);
    expect((await reply).toolCalls.map(({ name }) => name)).toEqual(['a', 'b']);
    expect(declared(model)).toEqual([
      ['old', 'a'],
      ['old', 'b'],
      ['old', 'b'],
    ]);
    expect(lists$.observed).toBe(false);
  });

  it('T10: are neither kept by the session, nor brought back after the call removed them', async () => {
    const removes = named('removes', ({ toolkit }) => {
      toolkit.remove('a');
      lists$.next([named('a'), removes, named('c')]);
    });
    const lists$ = new BehaviorSubject<readonly Tool[]>([named('a'), removes]);
    const model = scriptedModel([toolCall('removes')], [text('done')], [text('again')]);
    const session = sessions(createAgent({ model })).open('s');
    await session.call('?', { use: [addTools(lists$)] });
    await session.call('?');
    expect(declared(model)).toEqual([['a', 'removes'], ['removes', 'c'], []]);
  });

  it('T11: may be hidden by a selection', async () => {
    const model = scriptedModel([text('done')]);
    const lists$ = new BehaviorSubject<readonly Tool[]>([named('a'), named('b')]);
    const use = [addTools(lists$), selectTools({ select: () => ['b'] })];
    await createAgent({ model, use }).call('?');
    expect(declared(model)).toEqual([['b']]);
  });

  it('T10: what an outer layer hides stays hidden beside added tools, also after a change', async () => {
    const change = named('change', ({ toolkit }) => toolkit.add(named('live')));
    const model = scriptedModel([toolCall('change')], [text('done')]);
    const hides: Layer = {
      name: 'hides',
      priority: 70,
      call: () => (next) => (call) => next(hideTools(call, 'secret', 'later')),
    };
    const adds: Layer = { ...addTools(named('later'), named('own')), priority: 71 };
    const tools = [named('secret'), change];
    const session = sessions(createAgent({ model, tools, use: [adds, hides] })).open('s');
    await session.call('?');
    expect(declared(model)).toEqual([
      ['change', 'own'],
      ['change', 'live', 'own'],
    ]);
    expect(session.toolkit.names).toEqual(['secret', 'change', 'live']);
  });

  it('T11: a selection does not count hidden tools', async () => {
    const model = scriptedModel([text('done')]);
    const tools = [named('secret'), named('a'), named('b')];
    const hides: Layer = {
      name: 'hides',
      priority: 70,
      call: () => (next) => (call) => next(hideTools(call, 'secret')),
    };
    const use = [hides, selectTools({ maxTools: 2 })];
    const events = await record(createAgent({ model, tools, use }).stream$('?'));
    expect(declared(model)).toEqual([['a', 'b']]);
    expect(events.filter(({ type }) => type === 'warning')).toEqual([]);
  });

  it('an interrupt ends the wait for the first list, and unsubscribes', async () => {
    let subscriptions = 0;
    const stop$ = new Subject<void>();
    const never$ = new Observable<readonly Tool[]>(() => {
      subscriptions += 1;
      return () => {
        subscriptions -= 1;
      };
    });
    const agent = createAgent({ model: scriptedModel(), use: [addTools(never$)] });
    const reply = agent.call('?', { use: [interruptOn(stop$)] });
    expect(subscriptions).toBe(1);
    stop$.next();
    expect((await reply).reason).toBe('interrupted');
    expect(subscriptions).toBe(0);
  });

  it('an error fails the call; a source without a list adds nothing', async () => {
    const model = scriptedModel([text('done')]);
    const agent = createAgent({ model, tools: [named('old')] });
    const failing$ = throwError(() => new Error('no lists'));
    await expect(agent.call('?', { use: [addTools(failing$)] })).rejects.toThrow('no lists');
    await agent.call('?', { use: [addTools(EMPTY)] });
    expect(declared(model)).toEqual([['old']]);
  });

  it('I14: a name that is there already is an error', async () => {
    const agent = createAgent({ model: scriptedModel(), tools: [named('old')] });
    const lists$ = new BehaviorSubject<readonly Tool[]>([named('old')]);
    await expect(agent.call('?', { use: [addTools(lists$)] })).rejects.toThrow(
      "Two tools are named 'old'",
    );
  });
});
