import { useContext, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { safeUrl } from './markdown-inline.js';
import { Markdown } from './markdown-view.js';
import {
  ActionsContext,
  CopyButton,
  Fold,
  Icon,
  type IconName,
  isSend,
  Json,
  Problem,
  QuietButton,
  Working,
} from './pieces.js';
import { ApprovalForm, ResultForm } from './tool-forms.js';
import {
  type AgentPart,
  isToolCall,
  plainTextOf,
  type Source,
  type ToolPart,
  type UiMessage,
  type UiPart,
  waitingIn,
} from './ui-message.js';

interface MessageProps {
  readonly message: UiMessage;
  /** Whether it is the last one. */
  readonly isLast: boolean;
  /** Why the conversation cannot be changed: an answer is running. */
  readonly busy: string | undefined;
}

/** A message, rendered again only when it changes. */
export const MessageView = ({ message, isLast, busy }: MessageProps) =>
  useMemo(
    () =>
      message.role === 'user' ? (
        <Question message={message} busy={busy} />
      ) : (
        <Answer message={message} isLast={isLast} busy={busy} />
      ),
    [message, isLast, busy],
  );

const Question = ({ message, busy }: Omit<MessageProps, 'isLast'>) => {
  const [isEdited, setEdited] = useState(false);
  const send = useContext(ActionsContext)?.send;
  const save = (edited: string) => {
    setEdited(false);
    send?.({ type: 'edit', messageId: message.id, text: edited });
  };
  return (
    <article class="question" aria-label="You">
      <h2 class="hidden">You</h2>
      {isEdited ? (
        <EditForm text={plainTextOf(message)} save={save} cancel={() => setEdited(false)} />
      ) : (
        <>
          <Bubble message={message} />
          <div class="actions">
            <QuietButton label="Edit" blocked={busy} act={() => setEdited(true)} />
          </div>
        </>
      )}
    </article>
  );
};

export const Bubble = ({ message }: Pick<MessageProps, 'message'>) => {
  const text = plainTextOf(message);
  return (
    <div class="bubble">
      {message.parts.map((part, at) => part.type === 'file' && <File key={at} part={part} />)}
      {text !== '' && <p>{text}</p>}
    </div>
  );
};

const EditForm = (props: {
  readonly text: string;
  readonly save: (text: string) => void;
  readonly cancel: () => void;
}) => {
  const [text, setText] = useState(props.text);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  const save = () => {
    if (text.trim() !== '') props.save(text.trim());
  };
  return (
    <form
      class="edit"
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
      onKeyDown={(event) => {
        if (event.key === 'Escape') {
          event.stopPropagation();
          props.cancel();
        } else if (isSend(event)) {
          event.preventDefault();
          save();
        }
      }}
    >
      <textarea
        ref={field}
        aria-label="Edit your message"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <div class="actions">
        <button type="button" onClick={props.cancel}>
          Cancel
        </button>
        <button type="submit" class="primary">
          Send again
        </button>
      </div>
    </form>
  );
};

const Answer = ({ message, isLast, busy }: MessageProps) => {
  const { parts, end, notice } = message;
  const isRunning = isLast && busy !== undefined;
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
          <QuietButton label="Regenerate" blocked={busy} act={again} />
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
      return <Markdown text={part.text} />;
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
            <ApprovalForm approval={part.data} input={undefined} />
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
  const title = (
    <>
      <b>{toolName}</b> <Status status={status} />
    </>
  );
  return (
    <section class="tool" aria-label={`Tool ${toolName}`}>
      <Fold class="card" title={title} isOpen={state === 'failed' || (isOpen && hasOutput)}>
        <Json label="Arguments" value={input ?? inputText ?? ''} />
        {hasOutput && <Json label={state === 'running' ? 'Progress' : 'Result'} value={output} />}
        {errorText !== undefined && <p class="failure">{errorText}</p>}
      </Fold>
      {isAsked && <ApprovalForm key={approval.token} approval={approval} input={input} />}
      {status === 'suspended' && suspended !== undefined && <ResultForm suspended={suspended} />}
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
            <Markdown text={it.text} />
          </div>
        ),
      )}
      {progress.every(({ kind }) => kind !== 'text') && text !== undefined && (
        <Markdown text={text} />
      )}
    </Fold>
  );
};

// ---------------------------------------------------------------- pieces

const File = ({ part }: { readonly part: Extract<UiPart, { type: 'file' }> }) => {
  const { url, mediaType, filename } = part;
  // Pictures of other sites would report that they were seen.
  if (url.startsWith('data:image/')) return <img src={url} alt={filename ?? 'Picture'} />;
  const isData = url.startsWith('data:');
  const href = isData ? url : safeUrl(url);
  const name = filename ?? mediaType;
  return href === undefined ? (
    <p class="notice">{name}</p>
  ) : (
    <p>
      <a
        href={href}
        {...(isData ? { download: name } : { target: '_blank', rel: 'noopener noreferrer' })}
      >
        {name}
      </a>
    </p>
  );
};

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
