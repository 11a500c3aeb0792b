import type { ComponentChildren } from 'preact';
import { useContext, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { wordsOf } from './fields.js';
import { ActionsContext, focusCard, focusWrong, formKeys, InTab, Instead } from './pieces.js';
import { FieldView } from './schema-form.js';
import {
  askedBy,
  entriesIn,
  entryFor,
  type Entry,
  type Field,
  fieldFor,
  type Problems,
  readEntry,
  stillIn,
} from './schema-fields.js';
import type { Suspended, ToolOutcome, ToolPart, Uncertain } from './ui-message.js';
import { NotSent, plainWords, Values } from './values-view.js';

const anyJson: Field = fieldFor({ title: 'Your answer, as JSON' });

/** Asks the user for the result of a suspended tool call: text, a form for the schema of its request, or JSON. */
export const ResultForm = (props: {
  readonly suspended: Suspended;
  /** Whether the tool call waits no longer. */
  readonly isOver: boolean;
}) => {
  const { toolCallId, toolName, request, given } = props.suspended;
  const { isOver } = props;
  const { send, tab } = useContext(ActionsContext) ?? {};
  const { schema } = useMemo(() => askedBy(request), [request]);
  const own = useMemo(() => fieldFor(schema ?? { type: 'string' }), [schema]);
  const [isJson, setJson] = useState(false);
  const [entry, setEntry] = useState<Entry>(() => entryFor(own));
  const [problems, setProblems] = useState<Problems>({});
  const field = isJson ? anyJson : own;
  const sent = useSent(isOver);
  if (isOver) return <NotSent value={sent.current ? '' : written(entry)} />;
  const label = `Question of ${wordsOf(toolName)}`;
  const asked = <QuestionView suspended={props.suspended} />;
  if (tab !== undefined)
    return (
      <InTab label={label} tab={tab}>
        {asked}
      </InTab>
    );
  const end = (outcome: ToolOutcome, form: HTMLElement | null) => {
    sent.current = true;
    focusCard(form);
    send?.(outcome);
  };
  if (given !== undefined) {
    const answer = given.type === 'failure' ? 'I cannot answer' : plainWords(given.output);
    return (
      <Chosen label={label} toolCallId={toolCallId} words={`Your answer: ${answer}`}>
        {asked}
      </Chosen>
    );
  }
  const change = (next: Entry) => {
    setEntry(next);
    setProblems(stillIn(readEntry(field, next), problems));
  };
  const switched = () => {
    setJson(!isJson);
    setProblems({});
    setEntry(entryFor(isJson ? own : anyJson));
  };
  return (
    <form
      class="ask"
      aria-label={label}
      noValidate
      onKeyDown={formKeys(focusCard)}
      onSubmit={(event) => {
        event.preventDefault();
        const form = event.currentTarget;
        const read = readEntry(field, entry);
        if (read.problems === undefined) {
          end({ type: 'result', toolCallId, output: read.value ?? null }, form);
          return;
        }
        setProblems(read.problems);
        focusWrong(form);
      }}
    >
      {asked}
      <FieldView field={field} entry={entry} change={change} problems={problems} />
      <Instead />
      <div class="actions">
        <button type="submit" class="primary">
          Send answer
        </button>
        <button
          type="button"
          onClick={(event) =>
            end(
              { type: 'failure', toolCallId, errorText: 'The user cannot answer this.' },
              event.currentTarget.form,
            )
          }
        >
          I cannot answer
        </button>
        {own.kind !== 'json' && (
          <button type="button" class="quiet" onClick={switched}>
            {isJson ? 'Use the form' : 'Enter JSON'}
          </button>
        )}
      </div>
    </form>
  );
};

/** The question of a tool, as it was asked. */
const QuestionView = ({ suspended }: { readonly suspended: Suspended }) => {
  const { toolName, request } = suspended;
  const { question, rest } = askedBy(request);
  return (
    <>
      <p class="asked">{question ?? `${wordsOf(toolName)} needs an answer from you.`}</p>
      <Values label="Details" value={rest} />
    </>
  );
};

/** A question of a tool with the answer of the user, once its tool call has ended. */
export const Answered = ({
  suspended,
  tool: { state, output },
}: {
  readonly suspended: Suspended;
  readonly tool: ToolPart;
}) => (
  <section class="answered" aria-label={`Question of ${wordsOf(suspended.toolName)}`}>
    <QuestionView suspended={suspended} />
    {state === 'done' && (
      <Values label="Your answer" value={output} schema={askedBy(suspended.request).schema} />
    )}
    {state === 'failed' && <p class="notice">You said that you cannot answer.</p>}
  </section>
);

/** Whether the user has sent the entry of a form. If the server refuses it, its tool call waits again. */
const useSent = (isOver: boolean) => {
  const sent = useRef(false);
  useEffect(() => {
    if (!isOver) sent.current = false;
  }, [isOver]);
  return sent;
};

/** The choice of the user, while other tool calls of the turn wait: their results go together. */
const Chosen = (props: {
  readonly label: string;
  readonly toolCallId: string;
  readonly words: string;
  readonly children: ComponentChildren;
}) => {
  const { send, announce } = useContext(ActionsContext) ?? {};
  const { words, toolCallId } = props;
  const rest = 'It is sent once you have answered the others, too.';
  useEffect(() => announce?.(`${words} ${rest}`), []);
  return (
    <section class="ask" aria-label={props.label}>
      {props.children}
      <p>{words}</p>
      <p class="notice">{rest}</p>
      <div class="actions">
        <button
          type="button"
          onClick={(event) => {
            focusCard(event.currentTarget);
            send?.({ type: 'change', toolCallId });
          }}
        >
          Change
        </button>
      </div>
    </section>
  );
};

/** The text of an entry, for a form whose tool call has ended without it. */
const written = (entry: Entry | undefined): string => {
  if (typeof entry === 'string') return entry;
  return Object.entries(entriesIn(entry))
    .flatMap(([name, value]) => {
      const text = written(value);
      return text === '' ? [] : [`${name}: ${text}`];
    })
    .join('\n');
};

const choices = [
  { outcome: 'again', label: 'Run it again' },
  { outcome: 'happened', label: 'It happened' },
  { outcome: 'failed', label: 'It failed' },
] as const;

/** Asks the user for the outcome of a tool call that was running when the server stopped. */
export const UncertainForm = ({ uncertain }: { readonly uncertain: Uncertain }) => {
  const { toolCallId, toolName, outcome: chosen, isSent = false } = uncertain;
  const { send, tab, settings } = useContext(ActionsContext) ?? {};
  const by = settings?.uncertain ?? 'program';
  const name = `Outcome of ${wordsOf(toolName)}`;
  const asked = (
    <p class="asked">
      The server stopped while <b>{wordsOf(toolName)}</b> was running. It may have happened or not
      {by === 'user' ? ': please find out.' : '. The program of this chat decides.'}
    </p>
  );
  if (by === 'program' || tab !== undefined)
    return (
      <InTab label={name} tab={by === 'program' ? undefined : tab}>
        {asked}
      </InTab>
    );
  const words = choices.find(({ outcome }) => outcome === chosen)?.label;
  if (words !== undefined && !isSent)
    return (
      <Chosen label={name} toolCallId={toolCallId} words={`Chosen: ${words}.`}>
        {asked}
      </Chosen>
    );
  return (
    <form class="ask" aria-label={name} onSubmit={(event) => event.preventDefault()}>
      {asked}
      <Instead />
      <div class="actions">
        {choices.map(({ outcome, label }) => (
          <button
            key={outcome}
            type="button"
            disabled={isSent}
            aria-pressed={chosen === outcome}
            onClick={(event) => {
              focusCard(event.currentTarget.form);
              send?.({ type: 'settle', toolCallId, outcome });
            }}
          >
            {label}
          </button>
        ))}
      </div>
    </form>
  );
};
