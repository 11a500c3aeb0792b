import { useContext, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Ask, Chosen, TabLink } from './ask.js';
import { ActionsContext, focusNext, focusWrong } from './pieces.js';
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
import { useTool } from './tools.js';
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
  const label = `Question of ${useTool(toolName).title}`;
  if (isOver) return <NotSent value={sent.current ? '' : written(entry)} />;
  const asked = <QuestionView suspended={props.suspended} />;
  if (tab !== undefined) {
    return (
      <Ask label={label} buttons={<TabLink tab={tab} />}>
        {asked}
      </Ask>
    );
  }
  const end = (outcome: ToolOutcome, form: HTMLElement | null) => {
    sent.current = true;
    focusNext(form);
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
  const submit = (form: HTMLFormElement) => {
    const read = readEntry(field, entry);
    if (read.problems === undefined) {
      end({ type: 'result', toolCallId, output: read.value ?? null }, form);
      return;
    }
    setProblems(read.problems);
    focusWrong(form);
  };
  const failure = {
    type: 'failure',
    toolCallId,
    errorText: 'The user cannot answer this.',
  } as const;
  const buttons = (
    <>
      <button type="submit" class="primary">
        Send answer
      </button>
      <button type="button" onClick={(event) => end(failure, event.currentTarget.form)}>
        I cannot answer
      </button>
      {own.kind !== 'json' && (
        <button type="button" class="quiet" onClick={switched}>
          {isJson ? 'Use the form' : 'Enter JSON'}
        </button>
      )}
    </>
  );
  return (
    <Ask label={label} submit={submit} buttons={buttons}>
      {asked}
      <FieldView field={field} entry={entry} change={change} problems={problems} />
    </Ask>
  );
};

/** The question of a tool, as it was asked. */
const QuestionView = ({ suspended }: { readonly suspended: Suspended }) => {
  const { toolName, request } = suspended;
  const { question, rest } = askedBy(request);
  const { title } = useTool(toolName);
  return (
    <>
      <p class="asked">{question ?? `${title} needs an answer from you.`}</p>
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
  <section
    class="answered"
    role="group"
    aria-label={`Question of ${useTool(suspended.toolName).title}`}
  >
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
  const { toolCallId, toolName, outcome: chosen, isSent = false, inputSchema } = uncertain;
  const { send, tab, settings } = useContext(ActionsContext) ?? {};
  const { title } = useTool(toolName, inputSchema);
  const by = settings?.uncertain ?? 'program';
  const label = `Outcome of ${title}`;
  const asked = (
    <p class="asked">
      The server stopped while <b>{title}</b> was running. It may have happened or not
      {by === 'user' ? ': please find out.' : '. The program of this chat decides.'}
    </p>
  );
  if (by === 'program' || tab !== undefined) {
    const link = by === 'user' && tab !== undefined ? { buttons: <TabLink tab={tab} /> } : {};
    return (
      <Ask label={label} {...link}>
        {asked}
      </Ask>
    );
  }
  const words = choices.find(({ outcome }) => outcome === chosen)?.label;
  if (words !== undefined && !isSent) {
    return (
      <Chosen label={label} toolCallId={toolCallId} words={`Chosen: ${words}.`}>
        {asked}
      </Chosen>
    );
  }
  const buttons = choices.map(({ outcome, label: name }) => (
    <button
      key={outcome}
      type="button"
      disabled={isSent}
      aria-pressed={chosen === outcome}
      onClick={(event) => {
        focusNext(event.currentTarget.form);
        send?.({ type: 'settle', toolCallId, outcome });
      }}
    >
      {name}
    </button>
  ));
  return (
    // Each of its buttons submits another word.
    <Ask label={label} submit={() => undefined} buttons={buttons}>
      {asked}
    </Ask>
  );
};
