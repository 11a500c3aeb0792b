import { describe, expect, it } from '@jest/globals';
import type { AgentEvent } from 'millrace';
import { marbles } from 'millrace/testing';
import { filter, type Observable, type OperatorFunction } from 'rxjs';
import { eventOf } from '../events.test-support.js';
import type { ApprovalQueue, PendingApproval } from '../approvals/index.js';
import { type ApprovalTokenOptions, toAgUi, toUiMessageStream } from '../index.js';

const toolCall = { type: 'tool_call', id: 'u', name: 'pay', input: { amount: 5 } } as const;
const events: Readonly<Record<string, AgentEvent>> = {
  b: eventOf({ type: 'preCall', input: [] }, { iteration: 0 }),
  p: eventOf({ type: 'preActing', toolCall }),
  r: eventOf({ type: 'approvalRequested', toolCall, round: 1 }),
  y: eventOf({ type: 'approvalDecided', toolCall, round: 1, approved: true }),
  n: eventOf({
    type: 'approvalDecided',
    toolCall,
    round: 1,
    approved: false,
    reason: 'sk-hunter2',
  }),
};
const waits = (callId: string, toolCallId: string): PendingApproval => ({
  ...{ tool: 'pay', callId, toolCallId, input: {}, expiresAt: 9, digest: '' },
  token: `token of ${callId}/${toolCallId}`,
});
const lists = {
  o: [],
  x: [waits('c', 'other'), waits('other', 'u')],
  t: [waits('c', 'other'), waits('c', 'u')],
};
const ids = { toolCallId: 'c/1/u', localId: 'u' };
const use = { ...ids, toolCallName: 'pay' };
const ticket = { token: 'token of c/u', expiresAt: 9 };

/** The custom events of AG-UI, and the data parts of the AI SDK, by a letter each. */
const values = {
  agUi: Object.fromEntries(
    Object.entries({
      r: ['approval_requested', use],
      t: ['approval_requested', { ...use, ...ticket }],
      y: ['approval_decided', { ...use, approved: true }],
      n: ['approval_decided', { ...use, approved: false }],
    } as const).map(([letter, [name, value]]) => [
      letter,
      { type: 'CUSTOM', name: `millrace.${name}`, value },
    ]),
  ),
  aiSdk: Object.fromEntries(
    Object.entries({
      r: { status: 'requested' },
      t: { status: 'requested', ...ticket },
      y: { status: 'approved' },
      n: { status: 'denied' },
    }).map(([letter, data]) => [
      letter,
      { type: 'data-approval', id: 'c/1/u', data: { ...ids, toolName: 'pay', ...data } },
    ]),
  ),
};

const isApproval = (it: object): boolean => JSON.stringify(it).includes('approval');

const protocols = {
  agUi: (options: ApprovalTokenOptions) => toAgUi(options),
  aiSdk: (options: ApprovalTokenOptions) => toUiMessageStream(options),
} satisfies Readonly<
  Record<string, (options: ApprovalTokenOptions) => OperatorFunction<AgentEvent, object>>
>;

describe.each(['agUi', 'aiSdk'] as const)('an approval in a stream: %s', (protocol) => {
  const told$ = (
    event$: Observable<AgentEvent>,
    options: ApprovalTokenOptions,
  ): Observable<object> => {
    const toProtocol: OperatorFunction<AgentEvent, object> = protocols[protocol](options);
    return event$.pipe(toProtocol, filter(isApproval));
  };

  it.each<[string, string, string, string, readonly string[]]>([
    // The events, what the desk says from when it is asked, what is told, and how long the desk is listened to.
    ['with its token, when there is one', '-bpr---y-|', 'o-t', '---r-t-y-|', ['---^-!']],
    ['with a token that is there', '-bpr----y|', 't', '---(rt)-y|', ['---(^!)']],
    ['without one of another', '-bpr--y--|', 'o-x---t', '---r--y--|', ['---^--!']],
    ['without one behind its decision', '-bpr-y---|', 'o-----t', '---r-y---|', ['---^-!']],
    ['without one behind its call', '-bpr-|', 'o---t', '---r-|', ['---^-!']],
    ['twice', '-bpr--yr---n-|', 'o-t', '---r-tyr-t-n-|', ['---^-!', '-------^-!']],
    ['no longer than it is listened to', '-bpr------', 'o---t', '---r--', ['---^--!']],
  ])('T12: is reported %s', (_, eventMarbles, deskMarbles, told, heard) => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const requests$ = cold(deskMarbles, lists);
      const until = told.endsWith('|') ? undefined : '------!';
      expectObservable(told$(cold(eventMarbles, events), { approvals: { requests$ } }), until).toBe(
        told,
        values[protocol],
      );
      expectSubscriptions(requests$.subscriptions).toBe([...heard]);
    });
  });

  it('T12: is shown without a token if there is no approval queue', () => {
    marbles(({ cold, expectObservable }) => {
      expectObservable(told$(cold('bprn|', events), {})).toBe('--rn|', values[protocol]);
    });
  });

  it('T12: accepts only the queue that approvalQueue() creates', () => {
    expect(() => protocols[protocol]({ approvals: {} as ApprovalQueue })).toThrow(
      /'approvals' must be an approvalQueue\(\)/,
    );
  });
});
