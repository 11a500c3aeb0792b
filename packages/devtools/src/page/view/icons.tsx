const icons = {
  first: 'M6 5v14M19 6l-9 6 9 6z',
  previous: 'M16 6l-9 6 9 6z',
  play: 'M7 5l12 7-12 7z',
  pause: 'M8 5v14M16 5v14',
  next: 'M8 6l9 6-9 6z',
  fit: 'M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5',
  plus: 'M12 5v14M5 12h14',
  minus: 'M5 12h14',
  cross: 'M6 6l12 12M18 6L6 18',
  help: 'M8 9a4 4 0 1 1 5.6 3.7c-1.1.6-1.6 1.2-1.6 2.3M12 18.5h.01',
  settings:
    'M4 7h10M18 7h2M4 17h2M10 17h10M14 7a2 2 0 1 0 4 0a2 2 0 1 0-4 0M6 17a2 2 0 1 0 4 0a2 2 0 1 0-4 0',
  theme: 'M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 1 1 0 16',
  download: 'M12 4v11M7 11l5 5 5-5M5 20h14',
  upload: 'M12 16V5M7 9l5-5 5 5M5 20h14',
  gaps: 'M3 12h5l2-5 4 10 2-5h5',
} as const;

export type IconName = keyof typeof icons;

/** A drawing beside a label. */
export const Icon = ({ name }: { readonly name: IconName }) => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
    <path d={icons[name]} />
  </svg>
);

/** A button with a drawing only. Its title has the key. */
export const IconButton = (props: {
  readonly icon: IconName;
  readonly label: string;
  readonly keys?: string;
  readonly isPressed?: boolean;
  readonly isDisabled?: boolean;
  readonly act: () => void;
}) => (
  <button
    type="button"
    class="icon-button"
    aria-label={props.label}
    title={props.keys === undefined ? props.label : `${props.label} (${props.keys})`}
    disabled={props.isDisabled === true}
    {...(props.isPressed !== undefined && { 'aria-pressed': props.isPressed })}
    onClick={props.act}
  >
    <Icon name={props.icon} />
  </button>
);
