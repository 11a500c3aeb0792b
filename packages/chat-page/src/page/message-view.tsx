import { useContext, useMemo } from 'preact/hooks';
import { wordsOf } from './fields.js';
import { Feedback } from './feedback.js';
import { File } from './file.js';
import { MarkdownView } from './markdown-view.js';
import { ActionsContext, CopyButton, Fold, Problem, QuietButton, Working } from './pieces.js';
import { Question } from './question.js';
import { safeUrl } from './safe-url.js';
import { Agent, isOfTool, LooseApproval, Tool } from './tool-view.js';
import {
  type AnswerUsage,
  type PartProps,
  plainTextOf,
  type Source,
  type UiMessage,
  type UiPart,
} from './ui-message.js';
import { Values } from './values-view.js';

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
  /** Whether the user edits it. */
  readonly isEdited: boolean;
  /** The last message before it that has a file. */
  readonly withFile: string | undefined;
}

/** A message, rendered again only when it changes. */
export const MessageView = (props: MessageProps) => {
  const { message, versions, isLast, isBusy, blocked, isEdited, withFile } = props;
  return useMemo(
    () =>
      message.role === 'user' ? (
        <Question {...{ message, versions, blocked, isEdited }} />
      ) : (
        <Answer {...{ message, isLast, isRunning: isLast && isBusy, blocked, withFile }} />
      ),
    [message, versions?.join(' '), isLast, isBusy, blocked, isEdited, withFile],
  );
};

interface AnswerProps extends Pick<MessageProps, 'message' | 'isLast' | 'blocked' | 'withFile'> {
  readonly isRunning: boolean;
}

const Answer = ({ message, isLast, isRunning, blocked, withFile }: AnswerProps) => {
  const { parts, end, notice } = message;
  const text = plainTextOf(message);
  const { send, settings } = useContext(ActionsContext) ?? {};
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
        <Problem text={end.error.text} {...(isLast && !isRunning && { retry: again })}>
          {isLast && withFile !== undefined && refusals.has(end.error.code ?? '') && (
            <>
              <p>A file may be the reason: every later question sends it again.</p>
              <button
                type="button"
                disabled={blocked !== undefined}
                onClick={() => send?.({ type: 'editing', messageId: withFile })}
              >
                Edit the message with the file
              </button>
            </>
          )}
        </Problem>
      )}
      {!isRunning && (
        <div class="actions">
          {text !== '' && <CopyButton text={text} />}
          <QuietButton label="Regenerate" blocked={blocked} act={again} />
          {settings?.hasFeedback === true && text !== '' && <Feedback answerId={message.id} />}
          {settings?.devtoolsUrl !== undefined && (
            <a
              class="quiet"
              href={callAt(settings.devtoolsUrl, message.id)}
              target="_blank"
              rel="noopener noreferrer"
            >
              Open in devtools
            </a>
          )}
          {end?.usage !== undefined && <Usage usage={end.usage} />}
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

/** The errors of requests that a model refuses as they are, such as one with a kind of picture that it does not take. */
const refusals = new Set(['invalidRequest', 'contextTooLong', 'tooLarge']);

/** The address of a call in devtools: the id of an answer is that of its first call. */
const callAt = (address: string, id: string): string =>
  `${address}${address.includes('#') ? '&' : '#'}call=${encodeURIComponent(id)}`;

/** Parts that show by themselves that the answer is running. */
const isShowing = (part: UiPart): boolean =>
  ('isOpen' in part && part.isOpen) ||
  (part.type === 'tool' && (part.state === 'input' || part.state === 'running'));

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
      return isOfTool(part, message) ? null : <Agent part={part} />;
    case 'approval':
      return <LooseApproval part={part} message={message} isRunning={isRunning} />;
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
          title={part.name === 'output' ? 'Output' : wordsOf(part.id ?? 'State')}
          isOpen={part.name === 'output'}
        >
          <Values label="Value" value={part.name === 'output' ? part.data : stateIn(part.data)} />
        </Fold>
      ) : null;
    case 'suspended':
    case 'uncertain':
    case 'step-start':
      return null;
  }
};

const stateIn = (data: unknown): unknown =>
  typeof data === 'object' && data !== null && 'state' in data ? data.state : data;

/** The usage of an answer: its tokens and, if the server knows prices, its cost. */
const Usage = ({ usage: { inputTokens, outputTokens, cost } }: { readonly usage: AnswerUsage }) => (
  <small
    title={`${inputTokens.toLocaleString()} tokens read, ${outputTokens.toLocaleString()} written`}
  >
    {(inputTokens + outputTokens).toLocaleString()} tokens
    {cost !== undefined && ` · ${cost.isPartial ? 'at least ' : ''}${moneyOf(cost)}`}
  </small>
);

const moneyOf = ({ currency, amount }: NonNullable<AnswerUsage['cost']>): string => {
  const style = { minimumFractionDigits: 2, maximumFractionDigits: amount < 0.01 ? 6 : 4 };
  return /^[A-Z]{3}$/u.test(currency)
    ? amount.toLocaleString([], { style: 'currency', currency, ...style })
    : `${amount.toLocaleString([], style)} ${currency}`;
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
