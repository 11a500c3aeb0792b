import { describe, expect, it } from '@jest/globals';
import {
  catchError,
  EMPTY,
  firstValueFrom,
  from,
  interval,
  map,
  mergeMap,
  of,
  throwError,
  timer,
} from 'rxjs';
import { createAgent } from '../agent.js';
import { turnThrough } from '../seams/through.js';
import { textBlock, textOf } from '../values/message.js';
import {
  acting,
  addEphemeral,
  append,
  checkInterrupt,
  type Context,
  end,
  insertAfter,
  insertBefore,
  limit,
  phase,
  type PhaseFactory,
  reasoning,
  replacePhase,
  type Run,
  storeMemory,
  withoutPhase,
} from './index.js';
import type { PhaseEdit } from './phase-list.js';
import { nativePhases } from '../loop.js';
import { marbles, record, scriptedModel, text, toolCall } from '../testing/index.js';
import { tool } from '../tools/tool.js';
import { sessions } from '../layers/sessions/index.js';

const echo = tool({ name: 'echo', description: 'Echoes.', run: () => 'echo' });
const hint: PhaseFactory = ({ info: call }) =>
  phase((run) =>
    of(
      addEphemeral(run, {
        id: `${call.callId}/hint/${run.iteration}`,
        role: 'user',
        content: [textBlock(`Turn ${run.iteration + 1}.`)],
      }),
    ),
  );

describe('phases', () => {
  it('L6: one that is inserted runs in every turn; what it adds for one request is never stored (I8)', async () => {
    const model = scriptedModel([toolCall('echo')], [text('Done.')]);
    const agent = createAgent({ model, tools: [echo], use: [insertBefore(reasoning, hint)] });
    const session = sessions(agent).open('s');
    await session.call('?');
    expect(model.requests.map(({ messages }) => messages.map(textOf))).toEqual([
      ['?', 'Turn 1.'],
      ['?', '', '', 'Turn 2.'],
    ]);
    const stored = await new Promise<readonly string[]>((resolve) =>
      session.memory.load$().subscribe((all) => resolve(all.map(({ role }) => role))),
    );
    expect(stored).toEqual(['user', 'assistant', 'tool', 'assistant']);
  });

  it('L6: the lists are made again: before, after, instead, without', () => {
    const places = (phases: readonly PhaseFactory[]) => phases.map(({ name }) => name);
    const edited = (...edits: readonly PhaseEdit[]) => places(turnThrough(edits, nativePhases));
    expect(places(nativePhases)).toEqual([
      'checkInterrupt',
      'reasoning',
      'acting',
      'checkInterrupt',
      'storeMemory',
      'limit',
    ]);
    expect(edited(insertAfter(acting, hint)).indexOf('hint')).toBe(3);
    expect(edited(replacePhase(limit, hint)).at(-1)).toBe('hint');
    expect(edited(insertBefore(reasoning, hint), withoutPhase(storeMemory))).not.toContain(
      'storeMemory',
    );
    // Of equal priority, earlier layers edit first; the outermost edits last.
    const outer = { ...insertBefore(checkInterrupt, limit), priority: 1 };
    expect(edited(outer, insertBefore(checkInterrupt, hint)).slice(0, 3)).toEqual([
      'hint',
      'limit',
      'checkInterrupt',
    ]);
    expect(nativePhases).toHaveLength(6);
    const model = scriptedModel();
    expect(() => createAgent({ model, use: [insertBefore(hint, hint)] })).toThrow(
      /no such phase.*storeMemory/,
    );
  });

  it('L6: one can end the run', async () => {
    const lazy: PhaseFactory = ({ info: call }) =>
      phase((run) =>
        of(
          end(run, 'stopped', {
            id: `${call.callId}/lazy`,
            role: 'assistant',
            content: [textBlock('Enough.')],
          }),
        ),
      );
    const agent = createAgent({ model: scriptedModel(), use: [insertBefore(reasoning, lazy)] });
    expect(textOf(await agent.call('?'))).toBe('Enough.');
  });

  it('L6: an ended run passes one of your own untouched, also if it is a bare operator', async () => {
    const seen: string[] = [];
    const bare: PhaseFactory = () => (run$) =>
      run$.pipe(map((run: Run) => (seen.push(run.status), run)));
    const agent = createAgent({
      model: scriptedModel([toolCall('echo')], [text('Done.')]),
      tools: [echo],
      use: [insertAfter(reasoning, bare)],
    });
    expect(textOf(await agent.call('?'))).toBe('Done.');
    expect(seen).toEqual(['open']);
  });

  it('I18: the loop waits for one, on the scheduler of the call', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const nap: PhaseFactory = (context) =>
        phase((run) => timer(5, context.scheduler).pipe(map(() => run)));
      const agent = createAgent({ model: model('-(tf|)'), use: [insertBefore(reasoning, nap)] });
      expectObservable(agent.call$('?', { scheduler }).pipe(map(textOf))).toBe('------(r|)', {
        r: 't',
      });
    });
  });

  const spoilt: readonly (readonly [
    string,
    (context: Context) => ReturnType<PhaseFactory>,
    RegExp,
  ])[] = [
    ['no run', () => mergeMap(() => EMPTY), /spoil.*none/s],
    ['two runs', () => mergeMap((run: Run) => of(run, run)), /spoil.*more than one/s],
    ['something else', () => map(() => 5 as never), /spoil.*something else/s],
    ['an error', () => mergeMap(() => throwError(() => new Error('Oh.'))), /spoil.*Oh\./s],
  ];
  it.each(spoilt)('L6: %s is an error that names the phase', async (_, work, why) => {
    const spoil: PhaseFactory = (context) => work(context);
    const agent = createAgent({
      model: scriptedModel([text('.')]),
      use: [insertBefore(reasoning, spoil)],
    });
    await expect(agent.call('?')).rejects.toThrow(why);
    await expect(agent.call('?')).rejects.toHaveProperty('code');
  });

  it('L6: one that never stops emitting is an error, not a hang', () => {
    marbles(({ model, expectObservable, scheduler }) => {
      const ticking: PhaseFactory = () =>
        mergeMap((run: Run) => interval(1, scheduler).pipe(map(() => run)));
      const agent = createAgent({
        model: model('(tf|)'),
        use: [insertBefore(reasoning, ticking)],
      });
      const code$ = agent
        .call$('?', { scheduler })
        .pipe(catchError((error: unknown) => of(Reflect.get(Object(error), 'code'))));
      expectObservable(code$).toBe('--(c|)', { c: 'invalidState' });
    });
  });

  it('I1: without acting the model is not asked again with open tools, and nothing of them is stored', async () => {
    const agent = createAgent({
      model: scriptedModel([toolCall('echo')]),
      tools: [echo],
      use: [withoutPhase(storeMemory), withoutPhase(acting)],
    });
    await expect(sessions(agent).open('s').call('?')).rejects.toMatchObject({
      code: 'invalidState',
    });
    const storing = createAgent({
      model: scriptedModel([toolCall('echo')]),
      tools: [echo],
      use: [withoutPhase(acting)],
    });
    const session = sessions(storing).open('s');
    await expect(session.call('?')).rejects.toMatchObject({ code: 'invalidState' });
    const stored = await firstValueFrom(session.memory.load$());
    expect(stored.map(({ role }) => role)).toEqual(['user']);
  });

  it('I1: one that leaves a tool use without its result is an error that names it, before anything is sent', async () => {
    const spoil: PhaseFactory = ({ info: call }) =>
      phase((run) =>
        of(
          append(run, {
            id: `${call.callId}/spoilt`,
            role: 'tool',
            content: [{ type: 'tool_result', toolCallId: 'x', content: [], isError: false }],
          }),
        ),
      );
    const model = scriptedModel();
    const agent = createAgent({ model, use: [insertBefore(reasoning, spoil)] });
    await expect(agent.call('?')).rejects.toThrow(/phase 'spoil'.*without its tool call/s);
    expect(model.requests).toEqual([]);
  });

  it('L6: one that cannot be made is an error that names it', async () => {
    const broken: PhaseFactory = () => {
      throw new Error('made badly');
    };
    const agent = createAgent({ model: scriptedModel(), use: [insertBefore(reasoning, broken)] });
    await expect(agent.call('?')).rejects.toThrow(/phase 'broken'.*made badly/);
  });

  it('L6: turns that do nothing are an error, not a hang', async () => {
    const agent = createAgent({ model: scriptedModel(), use: [withoutPhase(reasoning)] });
    await expect(agent.call('?')).rejects.toThrow(/neither asked the model nor ended/);
  });

  it('L6: a list can be all of your own', async () => {
    const model = scriptedModel([text('Done.')]);
    const events = await record(
      createAgent({ model, use: [{ name: 'own', turn: () => [reasoning] }] }).stream$('?'),
    );
    expect(events.at(-1)).toMatchObject({ type: 'postCall', reply: { reason: 'answer' } });
  });

  it('refuses what is no list of phases', () => {
    const model = scriptedModel();
    const own = (phases: unknown) => [{ name: 'own', turn: () => phases as never }];
    expect(() => createAgent({ model, use: own([]) })).toThrow(/insertBefore/);
    expect(() => createAgent({ model, use: own([hint, 5]) })).toThrow(/insertBefore/);
    expect(() => createAgent({ model, use: own(from([])) })).toThrow(/'turn' of a layer/);
    expect(() => createAgent({ model, phases: [hint] } as never)).toThrow(/no option 'phases'/);
  });
});
