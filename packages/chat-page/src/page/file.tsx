import { safeUrl } from './safe-url.js';
import type { UiPart } from './ui-message.js';

/** A picture, or a link to a file. */
export const File = ({ part }: { readonly part: Extract<UiPart, { type: 'file' }> }) => {
  const { url, mediaType, filename } = part;
  // Pictures of other sites would report that they were seen.
  if (url.startsWith('data:image/')) return <img src={url} alt={filename ?? 'Picture'} />;
  const isData = url.startsWith('data:');
  const href = isData ? url : safeUrl(url);
  const name = filename ?? mediaType;
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
