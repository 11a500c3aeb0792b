import { describe, expect, it } from '@jest/globals';
import { firstValueFrom } from 'rxjs';
import { textOf } from '../index.js';
import {
  createCallStore,
  fork$,
  inProcessCalls,
  otherAnswer,
  otherQuestion,
  otherResult,
} from './index.js';
import type { ForkOptions } from './fork.js';
import { payer } from './payer.test-support.js';
import { all, begun, step, storeWith, journalIn } from './stored-calls.test-support.js';

/** A store with a call `c` that has ended. */
const paid = async () => {
  const driver = inProcessCalls(() => 0);
  await payer(driver).agent.call('Pay c.', { callId: 'c' });
  const fork = (edit: ForkOptions['edit'], at = '2') =>
    firstValueFrom(fork$(createCallStore(driver), 'c', { at, callId: 'f', edit: edit ?? {} }));
  return { driver, fork };
};

describe('edits of a fork', () => {
  it('S7: each gives a step of its kind another outcome', async () => {
    const { driver, fork } = await paid();
    const id = await fork({
      call: otherQuestion('Pay d.'),
      '1': otherAnswer('Nothing to pay.'),
    });
    const [first, , second] = (await all(driver.read$(id))).flat();
    expect(first?.text).toContain('Pay d.');
    expect(second?.text).toContain('Nothing to pay.');
    const other = await paid();
    const forked = await other.fork({ '1/0': otherResult('Ann is not there.') });
    expect(
      textOf(await journalIn(other.driver).resume(payer(other.driver).agent, forked)),
    ).toContain('Ann is not there.');
  });

  it.each([
    ['1', otherResult('x'), 'an answer of the model. Edit it with otherAnswer(text).'],
    ['call_1_1/1', otherResult('x'), 'an answer of the model. Edit it with otherAnswer(text).'],
    ['1/0', otherAnswer('x'), 'the result of a tool. Edit it with otherResult(returned).'],
    ['1/0/intent', otherResult('x'), "to run a tool. The result of the tool is in the step '1/0'."],
    ['call', otherAnswer('x'), 'the start of the call. Edit it with otherQuestion(text).'],
    ['open', otherQuestion('x'), 'Edit it with a function of your own: (step) => value.'],
    ['call_1_1/reply', otherAnswer('x'), 'the reply of a call. Edit it with a function'],
  ])('S7: one of another kind than the step %s is refused', async (id, edit, why) => {
    const { driver, fork } = await paid();
    await expect(fork({ [id]: edit })).rejects.toMatchObject({
      code: 'config',
      message: expect.stringContaining(why),
    });
    // Before anything is written.
    expect(await all(driver.read$('f'))).toEqual([]);
  });

  it('S7: as a function of all steps, it edits those of its kind', async () => {
    const { driver, fork } = await paid();
    const reply = await journalIn(driver).resume(
      payer(driver).agent,
      await fork(otherResult('Nobody.')),
    );
    expect(textOf(reply)).toContain('Nobody. Nobody. Nobody.');
  });

  it('S7: the steps nearest to one that there is not are named', async () => {
    const { fork } = await paid();
    await expect(fork({ '1/7': otherResult('x') })).rejects.toThrow(
      "does not keep a step '1/7', so it cannot be edited. It keeps: 1, 1/0/intent, 1/0, 1/1/intent,",
    );
    const many = Array.from({ length: 300 }, (_, index) => step(`c/${index + 1}`, {}));
    const store = await storeWith({ c: [begun('c'), ...many] });
    await expect(firstValueFrom(fork$(store, 'c', { at: '123/4' }))).rejects.toThrow(
      "no step '123/4'. It can be forked at: 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, and 291 more.",
    );
    await expect(firstValueFrom(fork$(store, 'c', { at: { iteration: 999 } }))).rejects.toThrow(
      'no iteration 999. It can be forked at: 90, 91,',
    );
  });
});
