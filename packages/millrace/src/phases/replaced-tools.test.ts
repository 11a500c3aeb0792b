import { describe, expect, it } from '@jest/globals';
import { AsyncSubject, BehaviorSubject, type Observable, of, throwError } from 'rxjs';
import {
  addTools,
  approval,
  createAgent,
  type Layer,
  on,
  requireApproval,
  type Tool,
  tool,
  transient,
} from '../index.js';
import { scriptedModel, text, toolCall } from '../testing/index.js';
import { mergeMap } from 'rxjs';

/** Tools that come and go during a call, and a wait in which they do. */
const world = () => {
  const ran: string[] = [];
  const pay = (version: string, first$: Observable<unknown> = of('Paid.')): Tool =>
    tool({
      name: 'pay',
      description: `Pays: ${version}.`,
      retry: { attempts: 2, backoffMs: 0 },
      run: () => {
        ran.push(version);
        return first$;
      },
    });
  const tools$ = new BehaviorSubject<readonly Tool[]>([]);
  const wait$ = new AsyncSubject<true>();
  const end = (): void => {
    wait$.next(true);
    wait$.complete();
  };
  return { ran, pay, tools$, wait$, end };
};

type World = ReturnType<typeof world>;

/** Where a tool call waits between the message of the model and the run. */
const waits: Readonly<Record<string, (it: World) => { own?: Tool; use?: Layer }>> = {
  'for its own approver': ({ pay, wait$ }) => ({ own: requireApproval(pay('first'), () => wait$) }),
  'for the approver of the call': ({ wait$ }) => ({ use: approval(() => wait$) }),
  'for an interceptor': ({ wait$ }) => ({
    use: on(
      'preActing',
      mergeMap((event) => wait$.pipe(mergeMap(() => of(event)))),
    ),
  }),
};

const play = async ({ tools$, end }: World, use: readonly Layer[], next: readonly Tool[]) => {
  const model = scriptedModel([toolCall('pay')], [text('Done.')]);
  const called = createAgent({ model, use: [addTools(tools$), ...use] }).call('Pay.');
  await new Promise(setImmediate);
  tools$.next(next);
  end();
  const { toolCalls } = await called;
  return toolCalls.map(({ output }) => output);
};

describe('I20: a tool that is replaced while its call waits', () => {
  it.each(Object.entries(waits))('%s: does not run', async (_, of) => {
    const it = world();
    const { own = it.pay('first'), use } = of(it);
    it.tools$.next([own]);
    const results = await play(it, use === undefined ? [] : [use], [it.pay('other')]);
    expect(results).toEqual([
      'Not run: the tool pay has been replaced. Call the new one if you still need it.',
    ]);
    expect(it.ran).toEqual([]);
  });

  it.each(Object.entries(waits))('%s: runs if only others have changed', async (_, of) => {
    const it = world();
    const { own = it.pay('first'), use } = of(it);
    it.tools$.next([own]);
    const others = tool({ name: 'look', description: 'Looks.', run: () => 'Seen.' });
    expect(await play(it, use === undefined ? [] : [use], [others, own])).toEqual(['Paid.']);
    expect(it.ran).toEqual(['first']);
  });

  it.each(Object.entries(waits))('%s: runs as it is now if it was made again', async (_, of) => {
    const it = world();
    const { own = it.pay('first'), use } = of(it);
    it.tools$.next([own]);
    const again = { ...own, run$: it.pay('again').run$, deciders: [...(own.deciders ?? [])] };
    expect(await play(it, use === undefined ? [] : [use], [again])).toEqual(['Paid.']);
    expect(it.ran).toEqual(['again']);
  });

  it('between two attempts: does not run a second time', async () => {
    const it = world();
    const failing$ = it.wait$.pipe(mergeMap(() => throwError(() => transient('Busy.'))));
    it.tools$.next([it.pay('first', failing$)]);
    expect(await play(it, [], [it.pay('other')])).toEqual([
      'Not run again: the tool pay has been replaced. Call the new one if you still need it.',
    ]);
    expect(it.ran).toEqual(['first']);
  });
});
