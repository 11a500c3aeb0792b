import { expect, it } from '@jest/globals';
import type { CallSummary } from 'millrace/journal';
import { plainTheme } from '../presentation/theme.js';
import { runsTable } from './runs-table.js';
import { shortId } from './run-id.js';

const now = 1_000_000_000;
const base = { agent: 'millrace', question: 'Why?' } as const;

it('writes one line for each run, and leaves out what no run has', () => {
  const runs: readonly CallSummary[] = [
    { ...base, callId: 'aaaaaaaaaa', createdAt: now - 500, updatedAt: now, status: 'running' },
    {
      ...base,
      callId: 'bbbbbbbbb1',
      createdAt: now - 90_000,
      updatedAt: now - 61_000,
      status: 'ended',
    },
    {
      ...base,
      callId: 'bbbbbbbbb2',
      createdAt: now - 9_000_000,
      updatedAt: now - 7_200_000,
      status: 'failed',
      reason: 'aborted',
    },
  ];
  expect(runsTable(runs, plainTheme, now).split('\n')).toEqual([
    'id          when       status      took        question',
    'aaaaaaaa    now        running     500 ms      Why?',
    'bbbbbbbbb1  1 min ago  ended       29.0 s      Why?',
    'bbbbbbbbb2  2 h ago    unfinished  30 min 0 s  Why?',
    '',
  ]);
});

it('shows the session, the agent if it is another one, and why a run cannot be read', () => {
  const runs: readonly CallSummary[] = [
    { ...base, callId: 'a', createdAt: 0, updatedAt: 0, status: 'unfinished', sessionId: 'trip' },
    { ...base, agent: 'clerk', callId: 'b', createdAt: 0, updatedAt: 0, status: 'suspended' },
    { ...base, question: '', callId: 'd', createdAt: 0, updatedAt: 0, status: 'ended' },
    { callId: 'c', createdAt: 0, updatedAt: 0, status: 'unreadable', why: 'It is\nbroken.' },
  ];
  expect(runsTable(runs, plainTheme, now)).toMatch(
    /^id .* {2}agent {2}session {2}question\na .* unfinished .* {3}trip {5}Why\?\nb .* suspended .* clerk {11}Why\?\nd .* \(no text: .*\nc .* unreadable .* It is broken\.\n$/,
  );
});

it('shortens an id as long as no other begins so', () => {
  expect(shortId('0123456789')).toBe('01234567');
  expect(shortId('0123456789', ['0123456789', '0123456700'])).toBe('012345678');
});

it('leaves out columns in a narrow terminal, the least important first', () => {
  const run: CallSummary = {
    ...base,
    callId: 'aaaaaaaaaa',
    createdAt: now - 500,
    updatedAt: now,
    status: 'unfinished',
    sessionId: '日本への旅',
    question: '東京は今何時ですか。それから大阪はどうですか。',
  };
  const at = (width: number) => runsTable([run], { ...plainTheme, width }, now).split('\n');
  expect(at(80)[1]).toBe(
    'aaaaaaaa  now   unfinished  500 ms  日本への旅  東京は今何時ですか。それから大…',
  );
  expect(at(57)[0]).toBe('id        when  status      session     question');
  expect(at(40)).toEqual([
    'id        status      question',
    'aaaaaaaa  unfinished  東京は今何時です…',
    '',
  ]);
});
