import { useContext, useRef } from 'preact/hooks';
import { type Fields, viewOf, wordsOf } from './fields.js';
import { lazyModule } from './lazy-module.js';
import { MarkdownView } from './markdown-view.js';
import { ActionsContext, Fold, Icon, type IconName } from './pieces.js';
import {
  type AgentPart,
  type Approval,
  approvalsIn,
  isOver,
  isToolCall,
  type PartProps,
  type SettledAs,
  type Suspended,
  type ToolPart,
  type UiMessage,
  type UiPart,
  type Uncertain,
  uncertainIn,
  waitingIn,
} from './ui-message.js';
import { Raw, Values } from './values-view.js';

type ToolStatus =
  | ToolPart['state']
  | 'approval'
  | 'suspended'
  | 'uncertain'
  | 'interrupted'
  | 'undone'
  | 'unanswered';

const labels: Readonly<Record<ToolStatus, string>> = {
  input: 'Preparing',
  running: 'Running',
  done: 'Done',
  failed: 'Failed',
  denied: 'Denied',
  cancelled: 'Cancelled',
  approval: 'Needs approval',
  suspended: 'Needs your answer',
  uncertain: 'Outcome unknown',
  interrupted: 'Not finished',
  stopped: 'Stopped',
  undone: 'Not done',
  unanswered: 'No answer',
};

const approvalStatus = (status: string): ToolStatus =>
  status === 'requested' ? 'approval' : status === 'denied' ? 'denied' : 'running';

const statusIcons = new Map<ToolStatus, IconName>([
  ['done', 'check'],
  ['failed', 'cross'],
  ['denied', 'denied'],
  ['cancelled', 'denied'],
  ['approval', 'question'],
  ['suspended', 'question'],
  ['uncertain', 'question'],
  ['interrupted', 'stop'],
  ['stopped', 'stop'],
  ['undone', 'stop'],
  ['unanswered', 'stop'],
]);

const Status = ({ status }: { readonly status: ToolStatus }) => {
  const icon = statusIcons.get(status);
  return (
    <span class={`status ${status}`}>
      {icon === undefined ? <i /> : <Icon name={icon} />}
      {labels[status]}
    </span>
  );
};

const useForms = lazyModule(() => import('./tool-forms.js'));

/** The approval of a tool of a sub-agent, which has no card of its own. */
export const LooseApproval = ({
  part: { data },
  message,
  isRunning,
}: PartProps<Extract<UiPart, { type: 'approval' }>>) => {
  const isAsked = data.status === 'requested' && isRunning;
  const forms = useForms(isAsked);
  // It stays while the server starts again, which asks again.
  if (message.parts.some(isToolCall(data.toolCallId))) return null;
  return (
    <section class="tool card" aria-label={`Tool ${wordsOf(data.toolName)}`} tabIndex={-1}>
      <header>
        <b>{wordsOf(data.toolName)}</b> <Status status={approvalStatus(data.status)} />
      </header>
      {isAsked && forms && <forms.ApprovalForm approval={data} input={undefined} isOver={false} />}
    </section>
  );
};

/** The decisions or results that a tool call waits for. */
interface Waits {
  readonly approval?: Approval | undefined;
  readonly suspended?: Suspended | undefined;
  readonly uncertain?: Uncertain | undefined;
}

const waitsOf = ({ part, message, isRunning }: PartProps<ToolPart>): Waits => {
  const { toolCallId, state } = part;
  const isOwn = (it: { readonly toolCallId: string }) => it.toolCallId === toolCallId;
  if (state !== 'input' && state !== 'running') return {};
  return {
    approval: isRunning ? approvalsIn(message).find(isOwn) : undefined,
    suspended: waitingIn(message).find(isOwn),
    uncertain: uncertainIn(message).find(isOwn),
  };
};

const wordsFor = new Map<unknown, string>([
  ['happened', 'You said that it has happened.'],
  ['failed', 'You said that it has failed.'],
  ['again', 'You said that it has not happened. The model was asked to run it again.'],
]);

const statusOf = (
  { part: { state }, isRunning }: PartProps<ToolPart>,
  waits: Waits,
  word: SettledAs | undefined,
  asked: Suspended | undefined,
): ToolStatus => {
  if (waits.approval !== undefined) return 'approval';
  if (waits.uncertain !== undefined) return 'uncertain';
  if (waits.suspended !== undefined) return 'suspended';
  if (word === 'again') return 'undone';
  if (asked !== undefined && state === 'failed') return 'unanswered';
  return !isRunning && (state === 'input' || state === 'running') ? 'interrupted' : state;
};

/** The parts of a message about a tool call. */
const aboutOf = ({ part: { toolCallId }, message: { parts } }: PartProps<ToolPart>) => {
  const isOwn = (it: { readonly toolCallId: string }) => it.toolCallId === toolCallId;
  return {
    asked: parts.flatMap((it) => (it.type === 'suspended' && isOwn(it.data) ? [it.data] : []))[0],
    approval: parts.flatMap((it) => (it.type === 'approval' && isOwn(it.data) ? [it.data] : []))[0],
    uncertain: parts.flatMap((it) =>
      it.type === 'uncertain' && isOwn(it.data) ? [it.data] : [],
    )[0],
  };
};

/** A tool call. The sub-agent that it runs is shown in its card. */
export const Tool = (props: PartProps<ToolPart>) => {
  const { part, message } = props;
  const { toolName, state, output, errorText } = part;
  const waits = waitsOf(props);
  const { asked, approval, uncertain } = aboutOf(props);
  // Only the server says the user's word: no output of a tool does.
  const word = state === 'done' || state === 'failed' ? uncertain?.outcome : undefined;
  const status = statusOf(props, waits, word, asked);
  const [agent, ...others] = message.parts.filter(
    (it): it is AgentPart => it.type === 'agent' && isBelow(it, part, message),
  );
  const words = wordsFor.get(word);
  const isInWords = words !== undefined || asked !== undefined;
  const hasOutput = !isInWords && output !== undefined && (state === 'running' || state === 'done');
  const hasView = hasOutput && state === 'done' && viewOf(output) !== '';
  const settings = useContext(ActionsContext)?.settings;
  const views = useForms(hasView);
  const isReply = state === 'done' && agent?.text !== undefined;
  return (
    <section class="tool" aria-label={`Tool ${wordsOf(toolName)}`}>
      <Fold
        class={agent === undefined ? 'card' : 'card agent'}
        title={
          <>
            {agent !== undefined && 'Agent '}
            <b>{wordsOf(toolName)}</b> <Status status={status} />
          </>
        }
        isOpen={
          openStates.has(status) || (status === 'running' && (hasOutput || agent !== undefined))
        }
      >
        <Arguments
          part={part}
          asked={approval?.asked}
          schema={(approval ?? uncertain)?.inputSchema}
        />
        {agent !== undefined && <AgentBody part={agent} />}
        {hasOutput && !isReply && !hasView && (
          <Values label={state === 'running' ? 'Progress' : 'Result'} value={output} />
        )}
        {errorText !== undefined && (!isInWords || state !== 'failed') && (
          <p class={state === 'failed' ? 'failure' : 'notice'}>{errorText}</p>
        )}
        {state === 'denied' && approval?.reason !== undefined && (
          <p class="notice">Reason: {approval.reason}</p>
        )}
      </Fold>
      {words !== undefined && <p class="notice">{words}</p>}
      {hasView && views && <views.ToolOutput output={output} renderers={settings?.renderers} />}
      <Forms waits={waits} part={part} asked={asked} />
      {others.map((it) => (
        <Agent key={it.id} part={it} />
      ))}
    </section>
  );
};

/** The arguments of a tool call: if others were approved than were asked about, both. */
const Arguments = (props: {
  readonly part: ToolPart;
  /** Those that were asked about. */
  readonly asked: unknown;
  readonly schema: Fields | undefined;
}) => {
  const { asked, schema } = props;
  const { input, inputText = '' } = props.part;
  // Arguments that still arrive, or that are no JSON, are no values.
  if (input === undefined || typeof input === 'string') {
    const text = input ?? inputText;
    return text === '' ? null : <Raw value={text} />;
  }
  return (
    <>
      <Values label="Asked for" value={asked} schema={schema} />
      <Values
        label={asked === undefined ? 'Arguments' : 'Approved, after an edit'}
        value={input}
        schema={schema}
      />
    </>
  );
};

const openStates: ReadonlySet<ToolStatus> = new Set(['failed', 'denied', 'cancelled', 'uncertain']);

/** The forms of a tool call. They stay when it ends without them: something may have been entered. */
const Forms = (props: {
  readonly waits: Waits;
  readonly part: ToolPart;
  readonly asked: Suspended | undefined;
}) => {
  const { waits, part, asked } = props;
  const { input } = part;
  const { approval, suspended, uncertain } = waits;
  const known = useRef<Pick<Waits, 'approval' | 'suspended'>>({});
  const key = JSON.stringify(input);
  const first = useRef<string | undefined>(undefined);
  if (approval !== undefined) {
    known.current = { approval };
    first.current ??= key;
  }
  if (suspended !== undefined) known.current = { suspended };
  const { current } = known;
  const forms = useForms(Boolean(current.approval ?? asked ?? uncertain));
  if (forms === undefined) return null;
  return (
    <>
      {asked !== undefined && isOver(part) && <forms.Answered suspended={asked} tool={part} />}
      {current.approval !== undefined && (
        <forms.ApprovalForm
          // The token changes when a server that has started again asks again.
          key={key}
          approval={current.approval}
          input={input}
          isOver={approval === undefined}
          hasChanged={first.current !== key}
        />
      )}
      {current.suspended !== undefined && (
        <forms.ResultForm suspended={current.suspended} isOver={suspended === undefined} />
      )}
      {uncertain !== undefined && <forms.UncertainForm uncertain={uncertain} />}
    </>
  );
};

/** Whether a tool call runs this sub-agent, directly or by another one. */
const isBelow = (agent: AgentPart, tool: ToolPart, { parts }: UiMessage): boolean =>
  agent.toolCallId === tool.toolCallId ||
  parts.some(
    (it) =>
      it.type === 'agent' && it.toolCallId === tool.toolCallId && agent.id.startsWith(`${it.id}/`),
  );

/** Whether one of the tool calls of a message runs this sub-agent. */
export const isOfTool = (agent: AgentPart, message: UiMessage): boolean =>
  message.parts.some((it) => it.type === 'tool' && isBelow(agent, it, message));

/** A sub-agent. */
export const Agent = ({ part }: { readonly part: AgentPart }) => {
  const status = agentStatus(part);
  const title = (
    <>
      Agent <b>{wordsOf(part.names.at(-1) ?? 'agent')}</b> <Status status={status} />
    </>
  );
  return (
    <Fold class="agent" title={title} isOpen={status !== 'done'}>
      <AgentBody part={part} />
    </Fold>
  );
};

const agentStatus = ({ status }: AgentPart): ToolStatus =>
  status === 'replied' ? 'done' : status === 'running' ? 'running' : 'failed';

const progressWords: Readonly<Record<string, string>> = { ...labels, notRun: labels.undone };

/** The messages and tool calls of a sub-agent. */
const AgentBody = ({ part }: { readonly part: AgentPart }) => {
  const { text, progress } = part;
  const isGrowing = agentStatus(part) === 'running';
  return (
    <>
      {progress.map((it, at) =>
        it.kind === 'tool' ? (
          <p key={at} class="notice">
            Tool <b>{wordsOf(it.text)}</b>: {progressWords[it.status ?? ''] ?? 'Running'}
          </p>
        ) : (
          <div key={at} class={it.kind}>
            <MarkdownView text={it.text} isOpen={isGrowing && at === progress.length - 1} />
          </div>
        ),
      )}
      {progress.every(({ kind }) => kind !== 'text') && text !== undefined && (
        <MarkdownView text={text} />
      )}
    </>
  );
};
