// Prepares a fork: the step from which the call is repeated, and new texts of steps that are kept.
import { useState } from 'preact/hooks';
import { finalize } from 'rxjs';
import type { Run } from '../model/run.js';
import { toolAt, messageAt } from '../model/conversation.js';
import { stepPosition } from '../model/compare.js';
import { Dialog } from './dialogs.js';
import { selectCall, useDevtools } from './state.js';

interface Editable {
  readonly step: string;
  readonly label: string;
  readonly text: string;
}

/** The steps of the root call that a fork keeps: their texts can be edited. */
export const editableSteps = (run: Run, at: string): readonly Editable[] => {
  const root = run.lanes.root;
  const position = root === undefined ? undefined : stepPosition(run, root.callId, at);
  if (root === undefined || position === undefined) return [];
  const steps = new Map<string, Editable>();
  for (const part of run.conversation.parts) {
    if (part.position >= position) break;
    if (part.callId !== root.callId) continue;
    if (part.type === 'input' && !steps.has('call'))
      steps.set('call', { step: 'call', label: 'The question', text: part.text });
    if (part.type === 'message' && part.step !== undefined) {
      const { text, isComplete, discarded } = messageAt(part, position);
      if (isComplete && discarded === undefined)
        steps.set(part.step, {
          step: part.step,
          label: `Message ${part.step}`,
          text: text.slice(0),
        });
    }
    if (part.type === 'tool' && part.step !== undefined) {
      const { result } = toolAt(part, position);
      if (result !== undefined)
        steps.set(part.step, {
          step: part.step,
          label: `Result of ${part.name} (${part.step})`,
          text: result.text,
        });
    }
  }
  return [...steps.values()];
};

export const ForkForm = ({
  run,
  callId,
  at,
}: {
  readonly run: Run;
  readonly callId: string;
  readonly at: string;
}) => {
  const { client, set, send } = useDevtools();
  const steps = editableSteps(run, at);
  const [edits, setEdits] = useState<Readonly<Record<string, string>>>({});
  const [step, setStep] = useState(steps.at(-1)?.step ?? '');
  const [isSending, setSending] = useState(false);
  const close = () => set({ fork: undefined });
  const current = steps.find((one) => one.step === step);
  const changed = Object.entries(edits).filter(
    ([id, text]) => steps.find((one) => one.step === id)?.text !== text,
  );
  const submit = (event: Event) => {
    event.preventDefault();
    setSending(true);
    const request = { at, ...(changed.length > 0 && { edits: Object.fromEntries(changed) }) };
    send(client.fork$(callId, request).pipe(finalize(() => setSending(false))), (id) => {
      set({
        ...selectCall(id),
        ...{ fork: undefined, compared: callId, tab: 'difference' },
      });
    });
  };
  return (
    <Dialog title={`Fork from step ${at}`} close={close}>
      <form class="fork" onSubmit={submit}>
        <p>
          The steps before it are kept, without asking a model or running a tool. From here on, the
          call runs again.
        </p>
        {steps.length > 0 && (
          <label>
            Edit a kept step
            <select value={step} onChange={({ currentTarget }) => setStep(currentTarget.value)}>
              {steps.map((one) => (
                <option key={one.step} value={one.step}>
                  {one.label}
                  {changed.some(([id]) => id === one.step) ? ' (edited)' : ''}
                </option>
              ))}
            </select>
          </label>
        )}
        {current !== undefined && (
          <label>
            {current.label}
            <textarea
              rows={8}
              value={edits[step] ?? current.text}
              onInput={({ currentTarget }) => setEdits({ ...edits, [step]: currentTarget.value })}
            />
          </label>
        )}
        <div class="actions">
          <button type="submit" class="primary" disabled={isSending}>
            {changed.length === 0
              ? 'Fork'
              : `Fork with ${changed.length} edit${changed.length > 1 ? 's' : ''}`}
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
};
