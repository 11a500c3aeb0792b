// One entry of the log in full.
import { agentOf, clusterText, describeEntry } from '../model/describe.js';
import type { CallEntry } from '../protocol.js';
import { deltaOf, type Entry } from '../model/log.js';
import { anyFields, stepOfMessage, fieldsOf, stringOf, toolCallIn } from '../model/read-event.js';
import type { Run } from '../model/run.js';
import { durationText } from '../model/axis.js';
import { LongText } from './chat.js';
import { JsonTree } from './json-tree.js';
import { type Chosen, useDevtools } from './state.js';

export const Inspector = ({
  run,
  chosen,
  call,
}: {
  readonly run: Run | undefined;
  readonly chosen: Chosen | undefined;
  readonly call: CallEntry | undefined;
}) => {
  const { set } = useDevtools();
  const entry = chosen === undefined ? undefined : run?.log.entry(chosen.position);
  if (run === undefined || chosen === undefined || entry === undefined) {
    return (
      <p class="empty">
        Choose a marble in the diagram, or press Enter to inspect the entry at the position.
      </p>
    );
  }
  const { title, detail } = describeEntry(entry);
  const count = chosen.until > chosen.position;
  return (
    <div class="inspector" data-testid="inspector" key={`${chosen.runId} ${chosen.position}`}>
      <h2>{title}</h2>
      {entry.type !== 'chunk' && detail !== '' && <p class="detail">{detail}</p>}
      <Facts run={run} entry={entry} until={chosen.until} />
      <div class="actions">
        <button type="button" onClick={() => set({ position: chosen.until + 1, isPlaying: false })}>
          Travel to here
        </button>
        <ForkButton run={run} entry={entry} call={call} />
      </div>
      {entry.type === 'chunk' && (
        <div class="joined">
          <h3>{count ? 'Joined text' : 'Delta'}</h3>
          <LongText
            text={
              count
                ? clusterText(entry.stream, chosen.position, chosen.until)
                : deltaOf(entry.stream, entry.index)
            }
          />
        </div>
      )}
      <JsonTree value={jsonOf(entry)} open={2} />
    </div>
  );
};

const jsonOf = (entry: Entry): unknown => {
  switch (entry.type) {
    case 'event':
      return entry.event;
    case 'mark':
      return entry.mark;
    case 'chunk':
      return {
        ...entry.stream.head,
        index: entry.index,
        at: entry.at,
        chunksSoFar: entry.stream.ats.length,
      };
  }
};

const Facts = ({
  run,
  entry,
  until,
}: {
  readonly run: Run;
  readonly entry: Entry;
  readonly until: number;
}) => {
  const step = stepOf(run, entry);
  const facts: readonly (readonly [string, string])[] = [
    ['time', `+${durationText(Math.round((entry.at - run.log.startedAt) * 10) / 10)}`],
    ['entry', until > entry.position ? `${entry.position} to ${until}` : `${entry.position}`],
    ...(entry.type === 'event'
      ? [['seq', `${entry.event.seq}`] as const, ['turn', `${entry.event.iteration}`] as const]
      : []),
    ...(step === undefined ? [] : [['step', step] as const]),
    ...(agentOf(entry) === '' ? [] : [['agent', agentOf(entry)] as const]),
  ];
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
};

/** The id of the step that an entry belongs to, such as `1` or `1/0`. */
const stepOf = ({ lanes }: Run, entry: Entry): string | undefined => {
  if (entry.type === 'mark') return entry.mark.mark === 'step' ? entry.mark.id : undefined;
  if (entry.type === 'chunk')
    return stepOfMessage(entry.stream.head.callId, entry.stream.head.messageId);
  const { callId } = entry.event;
  const { toolCall, message, messageId } = anyFields(entry.event);
  return (
    lanes.calls.get(callId)?.stepsByTool.get(toolCallIn(toolCall).id) ??
    stepOfMessage(callId, stringOf(messageId) || stringOf(fieldsOf(message)['id']))
  );
};

// ---------------------------------------------------------------- forks

const ForkButton = ({
  run,
  entry,
  call,
}: {
  readonly run: Run;
  readonly entry: Entry;
  readonly call: CallEntry | undefined;
}) => {
  const { set, session } = useDevtools();
  const at = forkPointOf(run, entry);
  if (call === undefined || at === undefined) return null;
  const why =
    call.unforkable ?? (session.source === 'file' ? 'It was opened from a file.' : undefined);
  return (
    <button
      type="button"
      aria-disabled={why !== undefined}
      title={why ?? `Repeats the call from step ${at}`}
      onClick={() => {
        if (why === undefined) set({ fork: { callId: call.id, at } });
      }}
    >
      Fork from here
    </button>
  );
};

/** The step that begins at an entry, or after it: the first that a fork performs again. */
export const forkPointOf = ({ lanes }: Run, entry: Entry): string | undefined => {
  const root = lanes.root;
  if (root === undefined || entry.type === 'mark')
    return entry.type === 'mark' && entry.mark.mark === 'step' && entry.mark.callId === root?.callId
      ? entry.mark.id
      : undefined;
  if (entry.type === 'chunk') {
    return entry.stream.head.callId === root.callId
      ? stepOfMessage(root.callId, entry.stream.head.messageId)
      : undefined;
  }
  const { event } = entry;
  if (event.callId !== root.callId) return undefined;
  const fields = anyFields(event);
  switch (event.type) {
    case 'preReasoning':
      return `${event.iteration}`;
    case 'preCall':
      return '1';
    // After a message, its tool calls are performed again.
    case 'postReasoning': {
      const step = stepOfMessage(root.callId, stringOf(fieldsOf(fields['message'])['id']));
      return step !== undefined && root.toolsByStep.has(`${step}/0`) ? `${step}/0` : step;
    }
    case 'preActing':
      return root.stepsByTool.get(toolCallIn(fields['toolCall']).id);
    // After a result, the step that follows.
    case 'postActing':
      return stepAfter(root.steps, root.stepsByTool.get(toolCallIn(fields['toolCall']).id));
    default:
      return undefined;
  }
};

/** The tool call after the last one that has begun, or the next message. */
const stepAfter = (
  steps: ReadonlyMap<string, number>,
  step: string | undefined,
): string | undefined => {
  if (step === undefined) return undefined;
  const [turn = '1', index = '0'] = step.split('/');
  const next = `${turn}/${Number(index) + 1}`;
  return steps.has(next) ? next : `${Number(turn) + 1}`;
};
