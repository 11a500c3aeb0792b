import { useContext, useState } from 'preact/hooks';
import { ActionsContext, Json } from './pieces.js';
import type { Verdict } from './server.js';
import type { Approval, Suspended } from './ui-message.js';

/** Asks the user whether a tool may run: approve, deny with a reason, or edit the arguments. */
export const ApprovalForm = ({
  approval,
  input,
}: {
  readonly approval: Approval;
  readonly input: unknown;
}) => {
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
export const ResultForm = ({ suspended }: { readonly suspended: Suspended }) => {
  const { toolCallId, toolName, request } = suspended;
  const send = useContext(ActionsContext)?.send;
  const [text, setText] = useState('');
  const [problem, setProblem] = useState('');
  return (
    <form
      class="ask"
      aria-label={`Result of ${toolName}`}
      onSubmit={(event) => {
        event.preventDefault();
        const value = parsed(text);
        if (value === undefined) setProblem('This is not valid JSON. Text needs quotation marks.');
        else send?.({ type: 'result', toolCallId, output: value.json });
      }}
    >
      <p>
        <b>{toolName}</b> waits for its result.
      </p>
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
          onClick={() =>
            send?.({ type: 'failure', toolCallId, errorText: text.trim() || 'There is no result.' })
          }
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
