import { describe, it } from '@jest/globals';
import { marbles } from 'millrace/testing';
import { timer } from 'rxjs';
import { approving$ } from './approving.js';
import { begun, type Conversation } from './conversation-state.js';
import { Refusal } from './responses.js';
import type { UiPart } from './ui-message.js';

const asking = (token: string | undefined, isReconnecting = false): Conversation => {
  const parts: readonly UiPart[] =
    token === undefined
      ? []
      : [
          {
            type: 'approval',
            data: { toolCallId: 't', toolName: 'pay', status: 'requested', mayEdit: false, token },
          },
        ];
  return {
    ...begun('a', []),
    status: 'answering',
    isReconnecting,
    messages: [{ id: 'm', role: 'assistant', parts }],
  };
};

const approval = {
  ...{ toolCallId: 't', toolName: 'pay', status: 'requested', mayEdit: false, token: 'old' },
} as const;
const gone = new Refusal('This request is no longer pending.', 410);
const down = new Error('The server cannot be reached.');

describe('an approval', () => {
  /** The answers of the server to each decision, and the state of the page after each wait. */
  const plays = (
    decisions: readonly string[],
    states: readonly Conversation[],
    expected: string,
    subscriptions: readonly string[],
  ) => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const tokens: string[] = [];
      let waits = 0;
      const answers = decisions.map((it) => cold<never>(it, {}, it.length > 2 ? down : gone));
      const server = {
        decide$: (token: string) => {
          tokens.push(token);
          return answers[tokens.length - 1] ?? cold<never>('|');
        },
        wait$: () => timer(2),
      };
      const state = () => states[Math.min((waits += 1), states.length) - 1];
      expectObservable(approving$({ server, state }, approval, { approved: true })).toBe(
        expected,
        {},
        gone,
      );
      expectSubscriptions(answers.at(-1)?.subscriptions ?? []).toBe([...subscriptions]);
    });
  };

  it('completes when the verdict counts', () => {
    plays(['-|'], [asking('old')], '-|', ['^!']);
  });

  it('waits for the question of a server that has started again, and decides on that', () => {
    const states = [asking('old', true), asking(undefined, true), asking('new')];
    plays(['-#', '-|'], states, '--------|', ['-------^!']);
  });

  it('sends the verdict again over a lost connection', () => {
    plays(['--#', '-|'], [asking('old')], '-----|', ['----^!']);
  });

  it('completes if the tool call no longer waits', () => {
    plays(['-#'], [asking(undefined)], '---|', ['^!']);
  });

  it('errors soon if the server is there, and does not ask again', () => {
    plays(['-#'], [asking('old')], '-------#', ['^!']);
  });

  it('errors at once with another refusal, and stops waiting when it is left', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const refused = new Refusal('The arguments are not valid.', 422);
      const decision$ = cold<never>('-#', {}, refused);
      const wait$ = cold('-----w');
      const server = { decide$: () => decision$, wait$: () => wait$ };
      const state = () => asking('old', true);
      const approved = { approved: true };
      expectObservable(approving$({ server, state }, approval, approved)).toBe('-#', {}, refused);
      const lost$ = cold<never>('-#', {}, down);
      const losing = { decide$: () => lost$, wait$: () => wait$ };
      expectObservable(approving$({ server: losing, state }, approval, approved), '^--!').toBe('');
      expectSubscriptions(wait$.subscriptions).toBe('-^-!');
    });
  });
});
