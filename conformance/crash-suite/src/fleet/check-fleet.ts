import { type AgentEvent, type Message, textOf } from 'millrace';
import type { StoredRecord } from 'millrace/journal';
import type { DbosEngine } from '@millrace/dbos';
import { firstValueFrom, lastValueFrom, mergeMap, reduce, toArray } from 'rxjs';
import { checkCall, type Verdict } from '../checks/check-call.js';
import { faultsIn } from '../checks/conversation.js';
import { expectedMemory } from '../checks/expected.js';
import type { Arrival, EffectServer } from '../effects/effect-server.js';
import { messagesIn } from '../life/conversation.js';
import type { Uncertainty } from '../life/said.js';
import { itemOf } from '../script/script-agent.js';
import { isHint } from '../script/script-model.js';
import type { Fleet } from './fleet.js';
import { fleetPlanOf, fleetTaskOf } from './fleet-plan.js';
import { hasEnded, type LedCall, type LedLine } from './lead-lines.js';

export interface FleetEvidence {
  readonly lines: readonly LedLine[];
  readonly engine: DbosEngine;
  readonly server: Pick<EffectServer, 'arrivals'>;
  readonly fleet: Pick<Fleet, 'wrongs' | 'failures'>;
  /** The run was ended early: only calls that had ended are checked, each on its own. */
  readonly isCut: boolean;
}

export interface FleetVerdict {
  readonly calls: number;
  readonly sessions: number;
  readonly effects: number;
  readonly lost: number;
  readonly doubled: number;
  readonly uncertain: number;
  readonly interrupted: number;
  /** Messages that were delivered to running calls. */
  readonly steered: number;
  readonly suspended: number;
  /** All failed checks, including lost and doubled effects. */
  readonly wrongs: readonly string[];
}

/** Compares the end state of a run with the expected one. */
export const checkFleet = async (evidence: FleetEvidence): Promise<FleetVerdict> => {
  const { engine, fleet, isCut } = evidence;
  const lines = isCut
    ? evidence.lines.map((line) => ({ ...line, calls: line.calls.filter(hasEnded) }))
    : evidence.lines;
  const open = new Set(
    (
      await lastValueFrom(
        engine.store.calls.driver.list$().pipe(
          mergeMap((it) => it),
          toArray(),
        ),
      )
    )
      .filter(({ isOpen }) => isOpen)
      .map(({ callId }) => callId),
  );
  const checked: CheckedLine[] = [];
  for (const line of lines) checked.push(await checkLine(line, evidence, open));
  const verdicts = checked.flatMap((line) => line.verdicts);
  const calls = lines.flatMap((line) => line.calls);
  const parts = calls.flatMap((call) => call.parts);
  const planned = lines.flatMap(({ line }) => line.bursts).flatMap((burst) => burst.calls).length;
  const sum = (count: (verdict: Verdict) => number): number =>
    verdicts.reduce((all, verdict) => all + count(verdict), 0);
  const steered = parts.flatMap(({ events }) => events.filter(({ type }) => type === 'steered'));
  return {
    calls: calls.length,
    sessions: lines.filter(({ line }) => line.sessionId !== undefined).length,
    effects: sum(({ effects }) => effects),
    lost: sum(({ lost }) => lost.length),
    doubled: sum(({ doubled }) => doubled.length),
    uncertain: parts.flatMap(({ events }) => uncertainIn(events)).length,
    interrupted: calls.filter((call) => call.parts.at(-1)?.reply?.reason === 'interrupted').length,
    steered: steered.length,
    suspended: parts.filter(({ reply }) => reply?.reason === 'suspended').length,
    wrongs: [
      ...fleet.wrongs,
      ...fleet.failures.map(({ callId, message }) => `${callId} failed: ${message}`),
      ...(isCut || planned === calls.length
        ? []
        : [`${planned - calls.length} calls were not started`]),
      ...checked.flatMap((line) => line.wrongs),
    ],
  };
};

interface CheckedLine {
  readonly verdicts: readonly Verdict[];
  readonly wrongs: readonly string[];
}

const checkLine = async (
  led: LedLine,
  { engine, server, isCut }: FleetEvidence,
  open: ReadonlySet<string>,
): Promise<CheckedLine> => {
  const { sessionId } = led.line;
  const messages =
    sessionId === undefined
      ? []
      : messagesIn((await firstValueFrom(engine.store.sessions.load$(sessionId)))?.state);
  const segments = segmentsOf(messages);
  const verdicts: Verdict[] = [];
  const wrongs: string[] = [];
  for (const call of led.calls) {
    const { callId } = call.call;
    const records = await recordsOf(call, engine);
    const memory = segments.get(callId) ?? [];
    const verdict = await verdictOn(call, { memory, records, open }, server.arrivals(callId));
    verdicts.push(verdict);
    const places = await Promise.all(
      call.parts.map(async ({ callId: id }) => (await firstValueFrom(engine.find$(id))).status),
    );
    wrongs.push(
      ...[
        ...verdict.lost.map((key) => `${key} was lost`),
        ...verdict.doubled.map((key) => `${key} was done twice`),
        ...verdict.wrongs,
        ...faultsInParts(call, records),
        ...faultsInEnd(call),
        ...faultsInSteers(call, memory),
        ...faultsInAnswers(call, memory),
        ...(sessionId === undefined ? faultsInReply(call) : []),
        ...places.filter((status) => status !== 'ended').map((it) => `the engine has it as ${it}`),
      ].map((wrong) => `${callId}: ${wrong}`),
    );
  }
  if (isCut) return { verdicts, wrongs };
  const started = led.calls.map(({ call }) => call.callId);
  const kept = [...messages].flatMap((message) => taskIn(message) ?? []);
  if (sessionId !== undefined && kept.join() !== started.join()) {
    wrongs.push(`${sessionId} has the calls ${kept.join()} and not ${started.join()}`);
  }
  wrongs.push(...faultsIn(messages).map((wrong) => `${sessionId ?? ''}: ${wrong}`));
  if (sessionId !== undefined) wrongs.push(...faultsInOrder(led));
  return { verdicts, wrongs };
};

/** The conversations of the calls of a session, by call. */
const segmentsOf = (messages: readonly Message[]): ReadonlyMap<string, readonly Message[]> => {
  const segments = new Map<string, Message[]>();
  let current: Message[] = [];
  for (const message of messages) {
    const callId = taskIn(message);
    if (callId !== undefined) {
      current = segments.get(callId) ?? [];
      segments.set(callId, current);
    }
    current.push(message);
  }
  return segments;
};

const taskIn = (message: Message): string | undefined =>
  message.role === 'user' && !isHint(message)
    ? /\((f\d+)\)\.$/u.exec(textOf(message))?.[1]
    : undefined;

const recordsOf = ({ parts }: LedCall, { store }: DbosEngine): Promise<readonly StoredRecord[][]> =>
  Promise.all(
    parts.map(({ callId }) =>
      lastValueFrom(
        store.calls.driver
          .read$(callId)
          .pipe(
            reduce<readonly StoredRecord[], StoredRecord[]>((all, some) => [...all, ...some], []),
          ),
      ),
    ),
  );

const verdictOn = async (
  led: LedCall,
  left: {
    readonly memory: readonly Message[];
    readonly records: readonly (readonly StoredRecord[])[];
    readonly open: ReadonlySet<string>;
  },
  arrivals: readonly Arrival[],
): Promise<Verdict> => {
  const { call, parts } = led;
  const { callId, seed, mode, sessionId } = call;
  const plan = fleetPlanOf(call);
  const expected = await expectedMemory({ callId, task: fleetTaskOf(call), plan });
  const reported = parts.flatMap(({ events }) => uncertainIn(events));
  const uncertain = [...reported, ...unreportedReruns(reported, arrivals)];
  return checkCall({
    call: { callId, seed, mode, ...(call.interrupt === undefined ? {} : { interruptAt: 1 }) },
    plan,
    outcome: {
      callId,
      replies: parts.flatMap(({ reply }) => reply ?? []),
      // A call without a session has none: its reply is checked.
      memory: sessionId === undefined ? expected : left.memory,
      records: left.records,
      open: parts.flatMap((part) => (left.open.has(part.callId) ? [part.callId] : [])),
    },
    expected,
    uncertain,
    brought: plan.flat().flatMap(({ tool, item }) => (tool === 'sign' ? [item] : [])),
    arrivals,
    after: [],
  });
};

const uncertainIn = (events: readonly AgentEvent[]): readonly Uncertainty[] =>
  events.flatMap((event) =>
    event.type === 'uncertain'
      ? [
          {
            key: `${event.callId}/${event.toolCall.id}`,
            item: itemOf(event.toolCall),
            then: event.then,
          },
        ]
      : [],
  );

/**
 * A worker that dies soon after it has run a tool again may take the report with it. The next one reports: runs are accepted if there is
 * a report, and no process has done the same twice.
 */
const unreportedReruns = (
  reported: readonly Uncertainty[],
  arrivals: readonly Arrival[],
): readonly Uncertainty[] => {
  const reruns = reported.filter(({ then }) => then === 'rerun');
  return [...new Map(reruns.map((it) => [it.key, it])).values()].flatMap((rerun) => {
    const lives = arrivals.filter(({ key }) => key === rerun.key).map(({ life }) => life);
    const isOnceEach = new Set(lives).size === lives.length;
    const known = reruns.filter(({ key }) => key === rerun.key).length;
    const missing = isOnceEach ? Math.max(0, lives.length - 1 - known) : 0;
    return Array.from({ length: missing }, () => rerun);
  });
};

/** Each part was followed to its end, in order, and no event that is recorded was left out. */
const faultsInParts = (
  { parts }: LedCall,
  records: readonly (readonly StoredRecord[])[],
): readonly string[] =>
  parts.flatMap(({ callId, events, failure }, index) => {
    const seqs = events.map(({ seq }) => seq);
    const back = seqs.findIndex((seq, at) => at > 0 && seq <= (seqs[at - 1] ?? 0));
    const seen = new Set(seqs);
    const missed = (records[index] ?? []).filter(
      ({ kind, seq }) => kind === 'event' && !seen.has(seq),
    );
    const last = events.at(-1);
    const isWhole = last?.type === 'postCall' && last.callId === callId;
    return [
      ...(failure === undefined ? [] : [`following ${callId} failed: ${failure}`]),
      ...(back === -1
        ? []
        : [`${callId} has the event ${seqs[back] ?? 0} after ${seqs[back - 1] ?? 0}`]),
      ...missed.map(({ seq, name }) => `the follower of ${callId} has missed ${name} ${seq}`),
      ...(isWhole ? [] : [`${callId} was not followed to its end (${last?.type ?? 'no event'})`]),
    ];
  });

const faultsInEnd = (led: LedCall): readonly string[] => {
  const reason = led.parts.at(-1)?.reply?.reason;
  const due = led.call.interrupt === undefined ? 'answer' : 'interrupted';
  return [
    ...led.refusals,
    ...(hasEnded(led) && reason === due
      ? []
      : [`it ended as ${reason ?? 'nothing'}, not as ${due}`]),
  ];
};

const faultsInSteers = (
  { parts, steers }: LedCall,
  memory: readonly Message[],
): readonly string[] =>
  steers.flatMap(({ partId, text, isSure }) => {
    const part = parts.find(({ callId }) => callId === partId);
    const told =
      part?.events.filter((it) => it.type === 'steered' && textOf(it.message) === text).length ?? 0;
    const kept = memory.filter((message) => textOf(message) === text).length;
    const isDue = isSure && part?.reply?.reason === 'answer';
    return [
      ...(told > 1 || kept > 1
        ? [`'${text}' was delivered ${told} times, and kept ${kept} times`]
        : []),
      ...(told === kept ? [] : [`'${text}' was delivered ${told} times, and kept ${kept} times`]),
      ...(isDue && told === 0 ? [`'${text}' was not delivered`] : []),
    ];
  });

const faultsInAnswers = ({ answers }: LedCall, memory: readonly Message[]): readonly string[] =>
  [...answers].flatMap(([toolCallId, text]) => {
    const results = memory
      .flatMap((message) => (message.role === 'tool' ? message.content : []))
      .filter((it) => it.toolCallId === toolCallId && it.suspended === undefined)
      .map(textOf);
    return results.join() === text ? [] : [`the result of ${toolCallId} is '${results.join()}'`];
  });

/** The conversation of a call without a session is only in its reply. */
const faultsInReply = ({ parts }: LedCall): readonly string[] => {
  const reply = parts.at(-1)?.reply;
  if (reply?.reason !== 'answer') return [];
  const ids = reply.toolCalls.map(({ toolCallId }) => toolCallId);
  const results = reply.toolCalls.map(({ output }) => output).join('; ');
  return [
    ...(new Set(ids).size === ids.length ? [] : [`the reply has a tool call twice: ${ids.join()}`]),
    ...(reply.text === `Done: ${results}`
      ? []
      : [`the answer is '${reply.text}', and the results are '${results}'`]),
  ];
};

/** The parts of a session run one after the other, in the order of their starts. */
const faultsInOrder = ({ calls }: LedLine): readonly string[] => {
  const parts = calls.flatMap((call) => call.parts);
  return parts.flatMap(({ callId, events }, index) => {
    const before = parts[index - 1];
    if (before === undefined) return [];
    const begun = events.find(({ type }) => type === 'preCall')?.at ?? Infinity;
    const ended = before.events.findLast(({ type }) => type === 'postCall')?.at ?? Infinity;
    return begun >= ended ? [] : [`${callId} began before ${before.callId} had ended`];
  });
};
