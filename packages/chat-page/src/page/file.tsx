import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Icon } from './pieces.js';
import { safeUrl } from './safe-url.js';
import type { FilePart } from './ui-message.js';

/** The files of a message that is being written. */
export const AttachedFiles = (props: {
  readonly files: readonly FilePart[];
  readonly change: (files: readonly FilePart[]) => void;
}) => {
  const { files, change } = props;
  return files.length === 0 ? null : (
    <ul class="files">
      {files.map((file, at) => (
        <li key={at}>
          <Picture part={file}>
            <span>{nameOf(file)}</span>
          </Picture>
          <button
            type="button"
            class="icon"
            aria-label={`Remove ${file.filename ?? 'the file'}`}
            onClick={({ currentTarget }) => {
              // The button will be gone: the focus stays in the form.
              currentTarget.closest('form')?.querySelector('textarea')?.focus();
              change(files.filter((it) => it !== file));
            }}
          >
            <Icon name="cross" />
          </button>
        </li>
      ))}
    </ul>
  );
};

const nameOf = ({ filename, mediaType }: FilePart): string => filename ?? mediaType;

/** A picture, or a link to a file. */
export const File = ({ part }: { readonly part: FilePart }) => (
  <Picture part={part}>
    <FileLink part={part} />
  </Picture>
);

/** A picture; something else for other files, and for a picture that the browser cannot draw, such as HEIC. */
const Picture = (props: { readonly part: FilePart; readonly children: ComponentChildren }) => {
  const { url, filename } = props.part;
  const [broken, setBroken] = useState('');
  // Pictures of other sites would report that they were seen.
  return url.startsWith('data:image/') && broken !== url ? (
    <img src={url} alt={filename ?? 'Picture'} onError={() => setBroken(url)} />
  ) : (
    <>{props.children}</>
  );
};

const FileLink = ({ part }: { readonly part: FilePart }) => {
  const { url } = part;
  const isData = url.startsWith('data:');
  const href = isData ? url : safeUrl(url);
  const name = nameOf(part);
  return href === undefined ? (
    <p class="notice">{name}</p>
  ) : (
    <p>
      <a
        href={href}
        {...(isData ? { download: name } : { target: '_blank', rel: 'noopener noreferrer' })}
      >
        {name}
      </a>
    </p>
  );
};
