import { useContext, useMemo, useRef } from 'preact/hooks';
import { File } from './file.js';
import { MarkdownView } from './markdown-view.js';
import {
  ActionsContext,
  CopyButton,
  Fold,
  Icon,
  type IconName,
  Json,
  Problem,
  QuietButton,
  Working,
} from './pieces.js';
import { Question } from './question.js';
import { safeUrl } from './safe-url.js';
import { ApprovalForm, ResultForm } from './tool-forms.js';
import {
  type AgentPart,
  type Approval,
  isToolCall,
  plainTextOf,
  type Source,
  type Suspended,
  type ToolPart,
  type UiMessage,
  type UiPart,
  waitingIn,
} from './ui-message.js';

interface MessageProps {
  readonly message: UiMessage;
  /** The ids of its versions, if there are several. */
  readonly versions: readonly string[] | undefined;
  /** Whether it is the last one. */
  readonly isLast: boolean;
  /** Whether an answer is running. */
  readonly isBusy: boolean;
  /** Why the conversation cannot be changed now. */
  readonly blocked: string | undefined;
}

/** A message, rendered again only when it changes. */
export const MessageView = ({ message, versions, isLast, isBusy, blocked }: MessageProps) =>
  useMemo(
    () =>
      message.role === 'user' ? (
        <Question message={message} versions={versions} blocked={blocked} />
      ) : (
        <Answer message={message} isLast={isLast} isRunning={isLast && isBusy} blocked={blocked} />
      ),
    [message, versions?.join(' '), isLast, isBusy, blocked],
  );

interface AnswerProps extends Pick<MessageProps, 'message' | 'isLast' | 'blocked'> {
  readonly isRunning: boolean;
}

const Answer = ({ message, isLast, isRunning, blocked }: AnswerProps) => {
  const { parts, end, notice } = message;
  const text = plainTextOf(message);
  const send = useContext(ActionsContext)?.send;
  const again = () => send?.({ type: 'regenerate', messageId: message.id });
  const note = notes.get(end?.reason ?? '');
  const isWaiting = isRunning && notice === undefined && !parts.some(isShowing);
  return (
    <article class="answer" aria-label="Answer" aria-busy={isRunning}>
      <h2 class="hidden">Answer</h2>
      {parts.map((part, at) => (
        <PartView key={at} part={part} message={message} isRunning={isRunning} />
      ))}
      {isWaiting && <Working />}
      {notice !== undefined && <p class="notice">{notice}</p>}
      {note !== undefined && <p class="notice">{note}</p>}
      {end?.error !== undefined && (
        <Problem text={end.error.text} {...(isLast && !isRunning && { retry: again })} />
      )}
      {!isRunning && (
        <div class="actions">
          {text !== '' && <CopyButton text={text} />}
          <QuietButton label="Regenerate" blocked={blocked} act={again} />
          {end?.tokens !== undefined && <small>{end.tokens.toLocaleString()} tokens</small>}
        </div>
      )}
    </article>
  );
};

const notes = new Map([
  ['interrupted', 'Stopped.'],
  ['stopped', 'Stopped.'],
  ['truncated', 'The answer was cut off at its maximum length.'],
  ['maxIterations', 'Stopped after the maximum number of steps.'],
  ['budget', 'Stopped: the budget is used up.'],
  ['refused', 'The model refused to answer.'],
  ['filtered', 'The answer was filtered.'],
]);

/** Parts that show by themselves that the answer is running. */
const isShowing = (part: UiPart): boolean =>
  ('isOpen' in part && part.isOpen) ||
  (part.type === 'tool' && (part.state === 'input' || part.state === 'running'));

interface PartProps<Part extends UiPart = UiPart> {
  readonly part: Part;
  readonly message: UiMessage;
  readonly isRunning: boolean;
}

const PartView = ({ part, message, isRunning }: PartProps) => {
  switch (part.type) {
    case 'text':
      return <MarkdownView text={part.text} isOpen={part.isOpen && isRunning} />;
    case 'reasoning':
      return part.text === '' ? null : (
        <Fold class="thinking" title={part.isOpen ? 'Thinking …' : 'Thoughts'}>
          <p class="plain">{part.text}</p>
        </Fold>
      );
    case 'tool':
      return <Tool part={part} message={message} isRunning={isRunning} />;
    case 'agent':
      return message.parts.some(
        (other) => other.type === 'tool' && isBelow(part, other, message),
      ) ? null : (
        <Agent part={part} />
      );
    case 'approval':
      // Those of the tools of sub-agents.
      return message.parts.some(isToolCall(part.data.toolCallId)) ? null : (
        <section class="tool card" aria-label={`Tool ${part.data.toolName}`}>
          <header>
            <b>{part.data.toolName}</b> <Status status={approvalStatus(part.data.status)} />
          </header>
          {part.data.status === 'requested' && isRunning && (
            <ApprovalForm approval={part.data} input={undefined} isOver={false} />
          )}
        </section>
      );
    case 'file':
      return <File part={part} />;
    case 'steered':
      return (
        <div class="question" role="note" aria-label="You added">
          <div class="bubble">
            <p>{part.text}</p>
          </div>
        </div>
      );
    case 'sources':
      return <Sources sources={part.sources} />;
    case 'data':
      return part.name === 'output' || part.name === 'state' ? (
        <Fold
          title={part.name === 'output' ? 'Output' : (part.id ?? 'State')}
          isOpen={part.name === 'output'}
        >
          <Json label="Value" value={part.name === 'output' ? part.data : stateIn(part.data)} />
        </Fold>
      ) : null;
    case 'suspended':
    case 'step-start':
      return null;
  }
};

const stateIn = (data: unknown): unknown =>
  typeof data === 'object' && data !== null && 'state' in data ? data.state : data;

// ---------------------------------------------------------------- tools

type ToolStatus = ToolPart['state'] | 'approval' | 'suspended' | 'stopped';

const labels: Readonly<Record<ToolStatus, string>> = {
  input: 'Preparing',
  running: 'Running',
  done: 'Done',
  failed: 'Failed',
  denied: 'Denied',
  cancelled: 'Cancelled',
  approval: 'Needs approval',
  suspended: 'Needs a result',
  stopped: 'Stopped',
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
  ['stopped', 'stop'],
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

const Tool = ({ part, message, isRunning }: PartProps<ToolPart>) => {
  const { toolCallId, toolName, state, input, inputText, output, errorText } = part;
  const isOpen = state === 'input' || state === 'running';
  const approval = message.parts.flatMap((it) =>
    it.type === 'approval' && it.data.toolCallId === toolCallId ? [it.data] : [],
  )[0];
  const suspended = waitingIn(message).find((it) => it.toolCallId === toolCallId);
  const isAsked = approval?.status === 'requested' && isOpen && isRunning;
  const status: ToolStatus = isAsked
    ? 'approval'
    : suspended !== undefined && !isRunning
      ? 'suspended'
      : isOpen && !isRunning
        ? 'stopped'
        : state;
  const agents = message.parts.filter(
    (it): it is AgentPart => it.type === 'agent' && isBelow(it, part, message),
  );
  const hasOutput = output !== undefined && (state === 'running' || state === 'done');
  // They stay when the tool call ends without them: something may have been entered.
  const forms = useRef<{ readonly approval?: Approval; readonly suspended?: Suspended }>({});
  if (isAsked) forms.current = { approval };
  if (status === 'suspended' && suspended !== undefined) forms.current = { suspended };
  const title = (
    <>
      <b>{toolName}</b> <Status status={status} />
    </>
  );
  return (
    <section class="tool" aria-label={`Tool ${toolName}`}>
      <Fold
        class="card"
        title={title}
        isOpen={state === 'failed' || state === 'cancelled' || (isOpen && hasOutput)}
      >
        <Json label="Arguments" value={input ?? inputText ?? ''} />
        {hasOutput && <Json label={state === 'running' ? 'Progress' : 'Result'} value={output} />}
        {errorText !== undefined && (
          <p class={state === 'cancelled' ? 'notice' : 'failure'}>{errorText}</p>
        )}
      </Fold>
      {forms.current.approval !== undefined && (
        <ApprovalForm
          key={forms.current.approval.token}
          approval={forms.current.approval}
          input={input}
          isOver={!isAsked}
        />
      )}
      {forms.current.suspended !== undefined && (
        <ResultForm suspended={forms.current.suspended} isOver={status !== 'suspended'} />
      )}
      {agents.map((agent) => (
        <Agent key={agent.id} part={agent} />
      ))}
    </section>
  );
};

/** Whether a tool call runs this sub-agent, directly or by another one. */
const isBelow = (agent: AgentPart, tool: ToolPart, { parts }: UiMessage): boolean =>
  agent.toolCallId === tool.toolCallId ||
  parts.some(
    (it) =>
      it.type === 'agent' && it.toolCallId === tool.toolCallId && agent.id.startsWith(`${it.id}/`),
  );

const Agent = ({ part }: { readonly part: AgentPart }) => {
  const { names, status, text, progress } = part;
  const name = names.at(-1) ?? 'agent';
  const state = status === 'replied' ? 'done' : status === 'running' ? 'running' : 'failed';
  const title = (
    <>
      Agent <b>{name}</b> <Status status={state} />
    </>
  );
  return (
    <Fold class="agent" title={title} isOpen={state !== 'done'}>
      {progress.map((it, at) =>
        it.kind === 'tool' ? (
          <p key={at} class="notice">
            Tool <b>{it.text}</b>: {it.status}
          </p>
        ) : (
          <div key={at} class={it.kind}>
            <MarkdownView
              text={it.text}
              isOpen={state === 'running' && at === progress.length - 1}
            />
          </div>
        ),
      )}
      {progress.every(({ kind }) => kind !== 'text') && text !== undefined && (
        <MarkdownView text={text} />
      )}
    </Fold>
  );
};

// ---------------------------------------------------------------- pieces

const Sources = ({ sources }: { readonly sources: readonly Source[] }) => (
  <Fold class="sources" title={`Sources (${sources.length})`}>
    <ol>
      {sources.map(({ number, source, title }, at) => {
        const href = safeUrl(source);
        const text = title ?? source;
        return (
          <li key={at} value={number ?? at + 1}>
            {href === undefined ? (
              text
            ) : (
              <a href={href} target="_blank" rel="noopener noreferrer nofollow">
                {text}
              </a>
            )}
            {title !== undefined && <small> {source}</small>}
          </li>
        );
      })}
    </ol>
  </Fold>
);
