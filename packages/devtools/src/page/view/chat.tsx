// The conversation of a run, as it was at the position. A window of parts is shown, and of long texts their end.
import { useState } from 'preact/hooks';
import { durationText } from '../model/axis.js';
import { messageAt, type Part, type TextAt, toolAt, type ToolPart } from '../model/conversation.js';
import type { Run } from '../model/run.js';
import { ErrorDetails } from './error-details.js';
import type { DiagramRun } from './rows.js';
import { useDevtools } from './state.js';

/** The parts that are shown together. */
const page = 30;
/** The characters of long texts that are shown until the rest is asked for. */
const shownLength = 3000;
const blockLength = 20_000;

interface ChatProps {
  readonly of: DiagramRun;
  readonly position: number;
}

export const Chat = ({ of, position }: ChatProps) => {
  const { run, id: runId, keptUntil } = of;
  const count = run.conversation.countAt(position);
  const [pages, setPages] = useState<{ readonly runId: string; readonly back: number }>({
    runId,
    back: 0,
  });
  const back = pages.runId === runId ? pages.back : 0;
  const end = Math.max(Math.min(page, count), count - back * page);
  const start = Math.max(0, end - page);
  const parts = run.conversation.parts.slice(start, end);
  const turn = (change: number) => setPages({ runId, back: back + change });
  return (
    <div class="chat" data-testid="conversation">
      {start > 0 && (
        <button type="button" class="more" onClick={() => turn(1)}>
          {start} earlier
        </button>
      )}
      {count === 0 && <p class="empty">Nothing has happened yet.</p>}
      {parts.map((part) => (
        <PartView
          key={part.key}
          {...{ part, runId, position, keptUntil, requests: run.requests }}
        />
      ))}
      {end < count && (
        <button type="button" class="more" onClick={() => turn(-1)}>
          {count - end} later
        </button>
      )}
    </div>
  );
};

interface PartProps<P = Part> {
  readonly part: P;
  readonly runId: string;
  readonly position: number;
  readonly keptUntil: number;
  readonly requests: Run['requests'];
}

const PartView = (props: PartProps) => {
  const { part } = props;
  const indent = { 'margin-left': `${part.depth * 14}px` };
  switch (part.type) {
    case 'input':
    case 'steered':
      return (
        <article class={`part user ${part.type}`} style={indent}>
          <Head
            {...props}
            name={
              part.type === 'steered' ? 'Steered' : part.depth === 0 ? 'User' : `To ${part.agent}`
            }
          />
          <LongText text={part.text} />
        </article>
      );
    case 'notice':
      return (
        <div class={`notice ${part.tone}`} style={indent}>
          <Link part={part} runId={props.runId} label={part.text} />
          {part.tone === 'bad' && <PromptButton part={part} requests={props.requests} />}
          <ErrorDetails error={part.error} />
        </div>
      );
    case 'message':
      return <Message {...props} part={part} indent={indent} />;
    case 'tool':
      return <Tool {...props} part={part} indent={indent} />;
  }
};

interface Indent {
  readonly indent: Readonly<Record<string, string>>;
}

const Message = (props: PartProps<Extract<Part, { type: 'message' }>> & Indent) => {
  const { part, position, indent } = props;
  const { text, thinking, isComplete, discarded } = messageAt(part, position);
  const isEmpty = text.length === 0 && thinking.length === 0;
  if (isEmpty && discarded === undefined && !isComplete) return null;
  const name = `${part.agent}${part.step === undefined ? '' : ` · message ${part.step}`}`;
  return (
    <article
      class={discarded === undefined ? 'part assistant' : 'part assistant discarded'}
      style={indent}
      aria-busy={!isComplete}
    >
      <Head {...props} name={name}>
        <PromptButton part={part} requests={props.requests} />
      </Head>
      {thinking.length > 0 && (
        <div class="thinking">
          <LongText text={thinking} />
        </div>
      )}
      {text.length > 0 &&
        (discarded === undefined ? (
          <LongText text={text} />
        ) : (
          <s>
            <LongText text={text} />
          </s>
        ))}
      {discarded !== undefined && <p class="why">Discarded: {discarded}</p>}
    </article>
  );
};

/** Opens the request that a message answers. */
const PromptButton = ({ part, requests }: Pick<PartProps, 'part' | 'requests'>) => {
  const { set } = useDevtools();
  const { callId, position } = part;
  const request = requests.at(callId, position);
  if (request === undefined) return null;
  return (
    <button
      type="button"
      class="prompt"
      title="Show what the model got"
      onClick={() => set({ tab: 'requests', request: request.position })}
    >
      Prompt
    </button>
  );
};

const Tool = (props: PartProps<Extract<Part, { type: 'tool' }>> & Indent) => {
  const { part, runId, position, indent } = props;
  const { input, result, status, progress } = toolAt(part, position);
  return (
    <article class={`part tool-part ${status}`} style={indent}>
      <Head {...props} name={part.name}>
        <span class={`status ${status}`}>{status}</span>
        {result !== undefined && <span class="ms">{durationText(result.ms)}</span>}
        {result === undefined && progress > 0 && <span class="ms">{progress} progress</span>}
      </Head>
      <div class="arguments">
        <LongText text={input} />
      </div>
      {result !== undefined && <Result {...result} runId={runId} />}
      {result !== undefined && <ErrorDetails error={result.error} />}
    </article>
  );
};

const Head = (
  props: PartProps & { readonly name: string; readonly children?: preact.ComponentChildren },
) => {
  const { part, runId, position, keptUntil, name, children } = props;
  const { edited } = part;
  const done = part.type === 'tool' ? (part.result?.position ?? Infinity) : part.position;
  return (
    <header>
      <Link part={part} runId={runId} label={name} />
      {children}
      {done < keptUntil && <span class="status">kept</span>}
      {edited !== undefined && edited < position && <span class="status held">edited</span>}
    </header>
  );
};

/** A result. It opens its entry in the inspector, from which the call can be forked. */
const Result = ({
  runId,
  position,
  text,
  isError,
}: NonNullable<ToolPart['result']> & { readonly runId: string }) => {
  const { set } = useDevtools();
  const look = isError ? 'result bad' : 'result';
  const act = () =>
    set({ chosen: { runId, position, until: position, kind: '' }, tab: 'inspector' });
  // A button cannot have another one, which long texts have.
  return text.length <= shownLength ? (
    <button type="button" class={look} title="Show this result" onClick={act}>
      <LongText text={text} />
    </button>
  ) : (
    <div class={look}>
      <button type="button" class="link" onClick={act}>
        Result
      </button>
      <LongText text={text} />
    </div>
  );
};

/** Opens the entry of a part in the inspector. */
const Link = ({
  part,
  runId,
  label,
}: {
  readonly part: Part;
  readonly runId: string;
  readonly label: string;
}) => {
  const { set } = useDevtools();
  const { position } = part;
  return (
    <button
      type="button"
      class="link"
      title="Show this entry"
      onClick={() =>
        set({ chosen: { runId, position, until: position, kind: '' }, tab: 'inspector' })
      }
    >
      {label}
    </button>
  );
};

/** The end of a long text, or all of it in blocks. */
export const LongText = ({ text }: { readonly text: TextAt }) => {
  const [isWhole, setWhole] = useState(false);
  const { length } = text;
  if (length <= shownLength) return <div class="long">{text.slice(0)}</div>;
  const blocks = isWhole
    ? Array.from({ length: Math.ceil(length / blockLength) }, (_, at) => at * blockLength)
    : [];
  return (
    <div class="long">
      <button type="button" class="more" onClick={() => setWhole(!isWhole)}>
        {isWhole ? 'Show the end only' : `Show all ${length.toLocaleString('en')} characters`}
      </button>
      {isWhole
        ? blocks.map((from) => <span key={from}>{text.slice(from, from + blockLength)}</span>)
        : `…${text.slice(length - shownLength)}`}
    </div>
  );
};
