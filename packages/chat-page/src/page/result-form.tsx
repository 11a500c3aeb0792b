import { useContext, useMemo, useState } from 'preact/hooks';
import {
  ActionsContext,
  focusCard,
  focusWrong,
  formKeys,
  InTab,
  Instead,
  Json,
  NotSent,
} from './pieces.js';
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
import type { ToolOutcome } from './requests.js';
import type { Suspended, Uncertain } from './ui-message.js';

const anyJson: Field = fieldFor({ title: 'Your answer, as JSON' });

/** Asks the user for the result of a suspended tool call: text, a form for the schema of its request, or JSON. */
export const ResultForm = (props: {
  readonly suspended: Suspended;
  /** Whether the tool call waits no longer. */
  readonly isOver: boolean;
}) => {
  const { toolCallId, toolName, request } = props.suspended;
  const { send, tab } = useContext(ActionsContext) ?? {};
  const { question, schema, rest } = useMemo(() => askedBy(request), [request]);
  const own = useMemo(() => fieldFor(schema ?? { type: 'string' }), [schema]);
  const [isJson, setJson] = useState(false);
  const [entry, setEntry] = useState<Entry>(() => entryFor(own));
  const [problems, setProblems] = useState<Problems>({});
  const field = isJson ? anyJson : own;
  if (props.isOver) return <NotSent text={written(entry)} />;
  const label = `Question of ${toolName}`;
  const asked = (
    <>
      <p class="asked">{question ?? `${toolName} needs an answer from you.`}</p>
      {rest !== undefined && <Json label="Details" value={rest} />}
    </>
  );
  if (tab !== undefined)
    return (
      <InTab label={label} tab={tab}>
        {asked}
      </InTab>
    );
  const end = (outcome: ToolOutcome, form: HTMLElement | null) => {
    setEntry(entryFor(own));
    focusCard(form);
    send?.(outcome);
  };
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
  const { toolCallId, toolName, by, outcome: chosen } = uncertain;
  const { send, tab } = useContext(ActionsContext) ?? {};
  const name = `Outcome of ${toolName}`;
  const asked = (
    <p class="asked">
      The server stopped while <b>{toolName}</b> was running. It may have happened or not
      {by === 'user' ? ': please find out.' : '. The program of this chat decides.'}
    </p>
  );
  if (by === 'program' || tab !== undefined)
    return (
      <InTab label={name} tab={by === 'program' ? undefined : tab}>
        {asked}
      </InTab>
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
            disabled={chosen !== undefined}
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
      {chosen !== undefined && (
        <p class="notice">If other tools wait for their outcomes, too, they go on together.</p>
      )}
    </form>
  );
};
