// Dialogs: keyboard help and settings.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Legend } from './legend.js';
import { useDevtools, writePrice } from './state.js';

export const Dialog = (props: {
  readonly title: string;
  readonly close: () => void;
  readonly children: ComponentChildren;
}) => {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    ref.current?.showModal();
  }, []);
  return (
    <dialog ref={ref} aria-labelledby="dialog-title" onClose={props.close}>
      <div class="dialog-head">
        <h2 id="dialog-title">{props.title}</h2>
        <button type="button" class="icon-button" aria-label="Close" onClick={props.close}>
          ×
        </button>
      </div>
      {props.children}
    </dialog>
  );
};

const keys: readonly (readonly [string, string])[] = [
  ['← →', 'Previous or next entry'],
  ['Shift + ← →', 'Previous or next turn'],
  ['Space', 'Play or pause'],
  ['L', 'Live'],
  ['Enter', 'Inspect the entry at the position'],
  ['+ −', 'Zoom; also Ctrl + wheel'],
  ['F', 'Fit and follow'],
  ['G', 'Compress idle time'],
  ['↑ ↓ (J K)', 'Previous or next call'],
  ['/', 'Search'],
  ['1 – 5', 'Conversation, prompt, inspector, breakpoints, layers'],
  ['F8', 'Continue a held call'],
  ['F10', 'Step: continue, and hold the next event'],
  ['?', 'This help'],
];

export const Help = () => {
  const { set } = useDevtools();
  return (
    <Dialog title="Keyboard" close={() => set({ dialog: undefined })}>
      <dl class="keys">
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <h3>Marbles</h3>
      <Legend />
      <p>
        A line is a subscription: it begins at ^ and ends with | (complete), × (error) or !
        (unsubscribed). Values that are too close to tell apart are one cluster with their number:
        click it to zoom in.
      </p>
    </Dialog>
  );
};

export const Settings = () => {
  const { ui, latest, set } = useDevtools();
  const { price } = ui;
  const field = (name: 'input' | 'output', label: string) => (
    <label>
      {label}
      <input
        type="number"
        min={0}
        step="any"
        // A number is typed digit by digit: '0.' must stay.
        defaultValue={price[name]}
        onInput={({ currentTarget }) => {
          const next = { ...latest().price, [name]: Number(currentTarget.value) };
          writePrice(next);
          set({ price: next });
        }}
      />
    </label>
  );
  return (
    <Dialog title="Prices" close={() => set({ dialog: undefined })}>
      <div class="settings">
        <p>
          With prices, the page shows what calls cost whose agents have no layer `cost`. They are
          kept in this browser.
        </p>
        {field('input', 'Price of a million input tokens, in dollars')}
        {field('output', 'Price of a million output tokens, in dollars')}
      </div>
    </Dialog>
  );
};
