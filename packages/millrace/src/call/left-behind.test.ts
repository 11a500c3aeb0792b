import { describe, expect, it } from '@jest/globals';
import { NEVER, type Observable, startWith, Subject, take, VirtualTimeScheduler } from 'rxjs';
import { type Agent, type CallOptions, createAgent, history, interruptOn, tool } from '../index.js';
import { createCallStore, inProcessCalls, journal } from '../journal/index.js';
import { type Session, sessions } from '../layers/sessions/index.js';
import { asAgent } from '../layers/teams/index.js';
import { finish, scriptedModel, text, toolCall } from '../testing/index.js';

const answering = () => createAgent({ model: scriptedModel([text('Yes.')]) });
const endless = () => createAgent({ model: scriptedModel(NEVER.pipe(startWith(text('On ')))) });
const hanging = (run: () => Observable<never>) =>
  createAgent({
    model: scriptedModel([toolCall('hang'), finish()]),
    tools: [tool({ name: 'hang', description: 'Hangs.', run })],
  });
const recorded = () => answering().with(journal(createCallStore(inProcessCalls())));
const sessionOf = (agent: Agent): Session => sessions(agent).open('s');

/** Makes a call and ends it. */
type Ended = (options: CallOptions) => void;

const answered =
  (call: (options: CallOptions) => Observable<unknown>): Ended =>
  (options) =>
    void call(options).subscribe();

const interrupted =
  (make: () => Agent): Ended =>
  (options) => {
    const session = sessionOf(make());
    session.call$('?', options).subscribe();
    session.interrupt();
  };

const aborted =
  (make: () => Agent): Ended =>
  (options) => {
    const { signal, abort } = abortable();
    sessionOf(make())
      .call$('?', { ...options, signal })
      .subscribe({ error: () => undefined });
    abort();
  };

const abortable = () => {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
};

describe('a call that has ended', () => {
  it.each<[string, Ended]>([
    ['is answered', answered((options) => answering().call$('?', options))],
    ['is answered in a session', answered((options) => sessionOf(answering()).call$('?', options))],
    ['has a history', answered((o) => answering().call$('?', { ...o, use: [history([])] }))],
    ['is recorded', answered((options) => recorded().call$('?', options))],
    ['is made of steps', answered((options) => asAgent(answering()).call$('?', options))],
    ['is left by take', answered((o) => endless().stream$('?', o).pipe(take(3)))],
    ['is unsubscribed', (options) => endless().call$('?', options).subscribe().unsubscribe()],
    ['is interrupted in a stream', interrupted(endless)],
    ['is interrupted in a tool', interrupted(() => hanging(() => NEVER))],
    ['is aborted in a stream', aborted(endless)],
    ['is aborted in a tool', aborted(() => hanging(() => NEVER))],
    [
      'is interrupted by a source',
      (options) => {
        const stop$ = new Subject<void>();
        endless()
          .call$('?', { ...options, use: [interruptOn(stop$)] })
          .subscribe();
        stop$.next();
        expect(stop$.observed).toBe(false);
      },
    ],
  ])('I5: leaves no timer if it %s', (_how, call) => {
    const scheduler = new VirtualTimeScheduler();
    call({ scheduler });
    expect(scheduler.actions).toEqual([]);
  });

  it.each([
    ['interrupted', interrupted],
    ['aborted', aborted],
  ])('I5: leaves what its tool waits for if it is %s', (_how, end) => {
    const work$ = new Subject<never>();
    end(() => hanging(() => work$))({ scheduler: new VirtualTimeScheduler() });
    expect(work$.observed).toBe(false);
  });
});
