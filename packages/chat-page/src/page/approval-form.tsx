import { useContext, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ArgumentsFields, editOf, readEdit } from './arguments-form.js';
import { mustDecideAgain } from './approving.js';
import { Ask, TabLink } from './ask.js';
import { parsedJson } from './fields.js';
import { ActionsContext, focusCard, focusNext, focusWrong } from './pieces.js';
import type { Problems } from './schema-fields.js';
import type { Verdict } from './server.js';
import { useTool } from './tools.js';
import type { Approval } from './ui-message.js';
import { NotSent, Values } from './values-view.js';

/** Asks the user whether a tool may run: approve, deny with a reason, or edit the arguments. */
export const ApprovalForm = (props: {
  readonly approval: Approval;
  readonly input: unknown;
  /** Whether the tool call waits no longer. */
  readonly isOver: boolean;
  /** Whether the user has seen other arguments before. */
  readonly hasChanged?: boolean;
}) => {
  const { approval, input, isOver, hasChanged = false } = props;
  const { toolName, token, expiresAt, mayEdit, inputSchema } = approval;
  const actions = useContext(ActionsContext);
  const { title } = useTool(toolName, inputSchema);
  const [mode, setMode] = useState<'ask' | 'deny' | 'edit' | 'sent'>('ask');
  const [reason, setReason] = useState('');
  const [edited, setEdited] = useState(() => JSON.stringify(input ?? {}, null, 2));
  // The arguments in a form, if they have a schema that one can show; otherwise as JSON.
  const [edit, setEdit] = useState(() => inputSchema && editOf(inputSchema, input));
  const [problems, setProblems] = useState<Problems>({});
  const [problem, setProblem] = useState('');
  const form = useRef<HTMLFormElement>(null);
  const hasMoved = useRef(false);
  // The button that was pressed is gone: the focus goes to the field, and back to the first button.
  useLayoutEffect(() => {
    const next = mode === 'ask' ? 'button' : 'input, textarea';
    if (hasMoved.current) form.current?.querySelector<HTMLElement>(next)?.focus();
    hasMoved.current = false;
  }, [mode]);
  // The form is another one for other arguments: what it says from the start is not announced by itself.
  useEffect(() => {
    if (hasChanged) actions?.announce(mustDecideAgain(input));
  }, []);
  const moveTo = (next: 'ask' | 'deny' | 'edit') => {
    hasMoved.current = true;
    setProblem('');
    setMode(next);
  };
  const decide = (verdict: Verdict) => {
    const back = mode;
    setMode('sent');
    setProblem('');
    focusNext(form.current);
    actions?.decide$({ ...approval, input }, verdict).subscribe({
      error: (error: unknown) => {
        setProblem(error instanceof Error ? error.message : 'It failed.');
        setMode(back);
      },
    });
  };
  const approve = () => {
    if (mode !== 'edit') {
      decide({ approved: true });
      return;
    }
    const read = edit === undefined ? parsedJson(edited) : readEdit(edit);
    if ('value' in read) decide({ approved: true, input: read.value });
    else if ('problem' in read) setProblem(read.problem);
    else {
      setProblems(read.problems);
      focusWrong(form.current);
    }
  };
  if (isOver) {
    const read = edit && readEdit(edit);
    const own = read && 'value' in read ? read.value : edited;
    return <NotSent value={mode === 'deny' ? reason : mode === 'edit' ? own : ''} />;
  }
  const isSent = mode === 'sent';
  const label = `Approval of ${title}`;
  const question = (
    <p>
      May <b>{title}</b> run{input === undefined ? '?' : ' with these arguments?'}
      {expiresAt !== undefined && <small> Until {timeOf(expiresAt)}.</small>}
    </p>
  );
  const shown = <Values label="Arguments" value={input} schema={inputSchema} />;
  if (actions?.tab !== undefined) {
    return (
      <Ask label={label} buttons={<TabLink tab={actions.tab} />}>
        {question}
        {shown}
      </Ask>
    );
  }
  if (token === undefined && !isSent) return <p class="notice">Waiting for an approval.</p>;
  const isAsking = mode === 'ask' || isSent;
  const buttons = (
    <>
      {mode === 'deny' ? (
        <button type="submit" class="danger">
          Deny
        </button>
      ) : (
        <button type="submit" class="primary" disabled={isSent}>
          {mode === 'edit' ? 'Approve edited' : 'Approve'}
        </button>
      )}
      {isAsking && mayEdit && input !== undefined && (
        <button type="button" disabled={isSent} onClick={() => moveTo('edit')}>
          Edit
        </button>
      )}
      {isAsking && (
        <button type="button" disabled={isSent} onClick={() => moveTo('deny')}>
          Deny …
        </button>
      )}
      {!isAsking && (
        <button type="button" onClick={() => moveTo('ask')}>
          Back
        </button>
      )}
    </>
  );
  return (
    <Ask
      label={label}
      form={form}
      leave={(own) => {
        if (mode === 'ask') focusCard(own);
        else moveTo('ask');
      }}
      submit={() => {
        if (mode === 'deny') decide({ approved: false, ...(reason !== '' && { reason }) });
        else approve();
      }}
      buttons={buttons}
    >
      {hasChanged && <p class="notice">{mustDecideAgain(input)}</p>}
      {question}
      {mode !== 'edit' ? (
        shown
      ) : edit !== undefined ? (
        <ArgumentsFields
          edit={edit}
          change={(next, left) => {
            setEdit(next);
            setProblems(left);
            setProblem('');
          }}
          problems={problems}
        />
      ) : (
        <JsonField
          label="Arguments, as JSON"
          value={edited}
          change={(next) => {
            setEdited(next);
            setProblem('');
          }}
        />
      )}
      {mode === 'deny' && (
        <label>
          Reason (optional)
          <input
            maxLength={1_000}
            value={reason}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        </label>
      )}
      {problem !== '' && (
        <p class="failure" role="alert">
          {problem}
        </p>
      )}
    </Ask>
  );
};

const timeOf = (ms: number): string =>
  new Date(ms).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });

const JsonField = (props: {
  readonly label: string;
  readonly value: string;
  readonly change: (value: string) => void;
}) => (
  <label>
    {props.label}
    <textarea
      class="code"
      spellcheck={false}
      value={props.value}
      onInput={(event) => props.change(event.currentTarget.value)}
    />
  </label>
);
