import { useContext, useRef } from 'preact/hooks';
import { type Fields, viewOf, wordsOf } from './fields.js';
import { lazyModule } from './lazy-module.js';
import { MarkdownView } from './markdown-view.js';
import { ActionsContext, Fold, Icon, type IconName } from './pieces.js';
import { titleOfTool, ToolsContext, useTool } from './tools.js';
import {
  type AgentPart,
  type Approval,
  isOver,
  isToolCall,
  type PartProps,
  type SettledAs,
  type Suspended,
  type ToolPart,
  type UiMessage,
  type UiPart,
  type Uncertain,
  waitingIn,
} from './ui-message.js';
import { isEmpty, Raw, Values } from './values-view.js';

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
  const { title } = useTool(data.toolName, data.inputSchema);
  // It stays while the server starts again, which asks again.
  if (message.parts.some(isToolCall(data.toolCallId))) return null;
  return (
    <section class="tool card" role="group" aria-label={`Tool ${title}`} tabIndex={-1}>
      <header>
        <b>{title}</b> <Status status={approvalStatus(data.status)} />
      </header>
      <Denial approval={data} />
      {isAsked && forms && <forms.ApprovalForm approval={data} input={undefined} isOver={false} />}
    </section>
  );
};

/** Why a tool call was denied. */
const Denial = ({ approval: { status, reason } }: { readonly approval: Approval }) =>
  status !== 'denied' || reason === undefined ? null : (
    <p class="notice">{ownReasons.get(reason) ?? `Reason: ${reason}`}</p>
  );

/** The words for reasons that no person has given. */
const ownReasons = new Map([
  ['No one decided on it in time.', 'No one decided in time, so it did not run.'],
  [
    'Its arguments cannot be shown to the reviewer.',
    'Its arguments cannot be shown, so no one could approve them. It did not run.',
  ],
]);

/** The parts of a message about a tool call. */
interface About {
  readonly approval?: Approval | undefined;
  readonly suspended?: Suspended | undefined;
  readonly uncertain?: Uncertain | undefined;
}

const aboutOf = ({ part: { toolCallId }, message: { parts } }: PartProps<ToolPart>): About =>
  parts.reduce<About>((about, it) => {
    if (!('data' in it) || it.type === 'data' || it.data.toolCallId !== toolCallId) return about;
    switch (it.type) {
      case 'approval':
        return { ...about, approval: it.data };
      case 'suspended':
        return { ...about, suspended: it.data };
      case 'uncertain':
        return { ...about, uncertain: it.data };
    }
  }, {});

/** The part of it that the tool call waits for: a decision or a result. */
const waitsOf = (
  { part: { state, toolCallId }, message, isRunning }: PartProps<ToolPart>,
  { approval, uncertain }: About,
): About =>
  state !== 'running'
    ? {}
    : {
        approval: isRunning && approval?.status === 'requested' ? approval : undefined,
        suspended: waitingIn(message).find((it) => it.toolCallId === toolCallId),
        uncertain,
      };

const wordsFor = new Map<unknown, string>([
  ['happened', 'You said that it has happened.'],
  ['failed', 'You said that it has failed.'],
  ['again', 'You said that it has not happened. The model was asked to run it again.'],
]);

const statusOf = (
  { part: { state }, isRunning }: PartProps<ToolPart>,
  waits: About,
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

/** A tool call. The sub-agent that it runs is shown in its card. */
export const Tool = (props: PartProps<ToolPart>) => {
  const { part, message } = props;
  const { toolName, state, output, errorText } = part;
  const about = aboutOf(props);
  const { suspended: asked, approval, uncertain } = about;
  const waits = waitsOf(props, about);
  const known = useTool(toolName, (approval ?? uncertain)?.inputSchema);
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
    <section class="tool" role="group" aria-label={`Tool ${known.title}`}>
      <Fold
        class={agent === undefined ? 'card' : 'card agent'}
        title={
          <>
            {agent !== undefined && 'Agent '}
            <b>{known.title}</b> <Status status={status} />
          </>
        }
        isOpen={
          openStates.has(status) || (status === 'running' && (hasOutput || agent !== undefined))
        }
      >
        <Arguments part={part} asked={approval?.asked} schema={known.input} />
        {agent !== undefined && <AgentBody part={agent} />}
        {hasOutput && !isReply && !hasView && (
          <Values
            label={state === 'running' ? 'Progress' : 'Result'}
            value={output}
            schema={known.output}
          />
        )}
        {errorText !== undefined && (!isInWords || state !== 'failed') && (
          <p class={state === 'failed' ? 'failure' : 'notice'}>{errorText}</p>
        )}
        {approval !== undefined && <Denial approval={approval} />}
      </Fold>
      {words !== undefined && <p class="notice">{words}</p>}
      {hasView && views && (
        <views.ToolOutput output={output} renderers={settings?.renderers} schema={known.output} />
      )}
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
  readonly schema: Fields;
}) => {
  const { asked, schema } = props;
  const { input, inputText = '', state } = props.part;
  // Arguments that still arrive, or that are no JSON, are no values.
  if (input === undefined || typeof input === 'string') {
    const text = input ?? inputText;
    return text === '' ? <None isComing={state === 'input'} /> : <Raw value={text} />;
  }
  if (asked === undefined && isEmpty(input)) return <None />;
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

/** The body of a card never is empty. */
const None = ({ isComing = false }: { readonly isComing?: boolean }) => (
  <small>{isComing ? 'The arguments are still arriving.' : 'No arguments.'}</small>
);

const openStates: ReadonlySet<ToolStatus> = new Set(['failed', 'denied', 'cancelled', 'uncertain']);

/** The forms of a tool call. They stay when it ends without them: something may have been entered. */
const Forms = (props: {
  readonly waits: About;
  readonly part: ToolPart;
  readonly asked: Suspended | undefined;
}) => {
  const { waits, part, asked } = props;
  const { input } = part;
  const { approval, suspended, uncertain } = waits;
  const known = useRef<Omit<About, 'uncertain'>>({});
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
  const tools = useContext(ToolsContext);
  return (
    <>
      {progress.map((it, at) =>
        it.kind === 'tool' ? (
          <p key={at} class="notice">
            Tool <b>{titleOfTool(tools, it.text)}</b>: {progressWords[it.status ?? ''] ?? 'Running'}
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
