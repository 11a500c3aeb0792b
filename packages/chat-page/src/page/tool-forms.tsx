import { useContext, useState } from 'preact/hooks';
import { ActionsContext, focusMessage, Json } from './pieces.js';
import type { Verdict } from './server.js';
import type { Approval, Suspended } from './ui-message.js';

/** The input of a form whose tool call has ended without it, such as in another tab. */
const NotSent = ({ text }: { readonly text: string }) =>
  text === '' ? null : <Json label="Not sent, because the tool call has ended" value={text} />;

/** A form has this below its question. */
const Instead = () => (
  <p class="notice">If you send a message instead, this tool call is cancelled.</p>
);

/** Asks the user whether a tool may run: approve, deny with a reason, or edit the arguments. */
export const ApprovalForm = (props: {
  readonly approval: Approval;
  readonly input: unknown;
  /** Whether the tool call waits no longer. */
  readonly isOver: boolean;
}) => {
  const { approval, input, isOver } = props;
  const { toolName, token, expiresAt, mayEdit } = approval;
  const actions = useContext(ActionsContext);
  const [mode, setMode] = useState<'ask' | 'deny' | 'edit' | 'sent'>('ask');
  const [reason, setReason] = useState('');
  const [edited, setEdited] = useState(() => JSON.stringify(input ?? {}, null, 2));
  const [problem, setProblem] = useState('');
  const decide = (verdict: Verdict) => {
    const back = mode;
    setMode('sent');
    setProblem('');
    actions?.decide$(token ?? '', verdict).subscribe({
      complete: focusMessage,
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
    const value = parsed(edited);
    if (value === undefined) setProblem('This is not valid JSON.');
    else decide({ approved: true, input: value.json });
  };
  if (isOver) return <NotSent text={mode === 'deny' ? reason : mode === 'edit' ? edited : ''} />;
  if (token === undefined) return <p class="notice">Waiting for an approval.</p>;
  const isSent = mode === 'sent';
  return (
    <form
      class="ask"
      aria-label={`Approval of ${toolName}`}
      onSubmit={(event) => {
        event.preventDefault();
        if (mode === 'deny') decide({ approved: false, ...(reason !== '' && { reason }) });
        else approve();
      }}
    >
      <p>
        May <b>{toolName}</b> run{input === undefined ? '?' : ' with these arguments?'}
        {expiresAt !== undefined && <small> Until {timeOf(expiresAt)}.</small>}
      </p>
      <Instead />
      {mode === 'edit' ? (
        <JsonField label="Arguments, as JSON" value={edited} change={setEdited} />
      ) : (
        input !== undefined && <Json label="Arguments" value={input} />
      )}
      {mode === 'deny' && (
        <label>
          Reason, for the model (optional)
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
      <div class="actions">
        {mode === 'deny' ? (
          <button type="submit" class="danger">
            Deny
          </button>
        ) : (
          <>
            <button type="submit" class="primary" disabled={isSent}>
              {mode === 'edit' ? 'Approve edited' : 'Approve'}
            </button>
            {mode !== 'edit' && (
              <>
                {mayEdit && input !== undefined && (
                  <button type="button" disabled={isSent} onClick={() => setMode('edit')}>
                    Edit
                  </button>
                )}
                <button type="button" disabled={isSent} onClick={() => setMode('deny')}>
                  Deny …
                </button>
              </>
            )}
          </>
        )}
        {(mode === 'deny' || mode === 'edit') && (
          <button type="button" onClick={() => setMode('ask')}>
            Back
          </button>
        )}
      </div>
    </form>
  );
};

const timeOf = (ms: number): string =>
  new Date(ms).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });

/** Asks the user for the result of a suspended tool call. */
export const ResultForm = (props: {
  readonly suspended: Suspended;
  /** Whether the tool call waits no longer. */
  readonly isOver: boolean;
}) => {
  const { toolCallId, toolName, request } = props.suspended;
  const send = useContext(ActionsContext)?.send;
  const [text, setText] = useState('');
  const [problem, setProblem] = useState('');
  if (props.isOver) return <NotSent text={text} />;
  return (
    <form
      class="ask"
      aria-label={`Result of ${toolName}`}
      onSubmit={(event) => {
        event.preventDefault();
        const value = parsed(text);
        if (value === undefined) setProblem('This is not valid JSON. Text needs quotation marks.');
        else {
          setText('');
          send?.({ type: 'result', toolCallId, output: value.json });
          focusMessage();
        }
      }}
    >
      <p>
        <b>{toolName}</b> waits for its result.
      </p>
      <Instead />
      {request !== undefined && request !== null && <Json label="Request" value={request} />}
      <JsonField label="Result, as JSON" value={text} change={setText} />
      {problem !== '' && (
        <p class="failure" role="alert">
          {problem}
        </p>
      )}
      <div class="actions">
        <button type="submit" class="primary">
          Send result
        </button>
        <button
          type="button"
          onClick={() => {
            send?.({
              type: 'failure',
              toolCallId,
              errorText: text.trim() || 'There is no result.',
            });
            focusMessage();
          }}
        >
          Report a failure
        </button>
      </div>
    </form>
  );
};

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

const parsed = (text: string): { readonly json: unknown } | undefined => {
  try {
    const json: unknown = JSON.parse(text);
    return { json };
  } catch {
    return undefined;
  }
};
