import { describe, it } from '@jest/globals';
import { marbles } from 'millrace/testing';
import { timer } from 'rxjs';
import { approving$ } from './approving.js';
import { begun, type Conversation } from './conversation-state.js';
import { Refusal } from './responses.js';
import type { UiPart } from './ui-message.js';

const asking = (
  token: string | undefined,
  isReconnecting = false,
  amount?: number,
): Conversation => {
  const parts: readonly UiPart[] =
    token === undefined
      ? []
      : [
          ...(amount === undefined
            ? []
            : [
                {
                  ...({ type: 'tool', toolCallId: 't', toolName: 'pay' } as const),
                  ...({ state: 'running', input: { amount } } as const),
                },
              ]),
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
    { input, error }: { input: unknown; error: Error } = { input: { amount: 5 }, error: gone },
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
      expectObservable(
        approving$({ server, state }, { ...approval, input }, { approved: true }),
      ).toBe(expected, {}, error);
      expectSubscriptions(answers.at(-1)?.subscriptions ?? []).toBe([...subscriptions]);
    });
  };

  it('completes when the verdict counts', () => {
    plays(['-|'], [asking('old')], '-|', ['^!']);
  });

  it('waits for the question of a server that has started again, and decides on that', () => {
    const states = [asking('old', true), asking(undefined, true), asking('new', false, 5)];
    plays(['-#', '-|'], states, '--------|', ['-------^!']);
  });

  it('does not approve arguments that the user has not seen', () => {
    const error = new Error('The arguments have changed. Decide again.');
    plays(['-#'], [asking('new', false, 5_000)], '---#', ['^!'], { input: { amount: 5 }, error });
    plays(['--#'], [asking('new', false, 5_000)], '----#', ['^-!'], {
      input: { amount: 5 },
      error,
    });
  });

  it('of a tool without arguments in the page does not count for another question', () => {
    const error = new Error('The server has asked again. Decide again.');
    plays(['-#'], [asking('new')], '---#', ['^!'], { input: undefined, error });
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
