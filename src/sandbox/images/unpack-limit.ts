import { ServiceError } from "../../errors.ts";
import { diskUsage } from "../disk-usage.ts";

const LOOK_MS = 1000;
/** The looks take at most one of so many parts of the time. */
const REST = 10;
/** Of a file beyond its bytes. */
const BLOCK_BYTES = 4096;
/** A disk has about so many bytes for each of its files. */
const BYTES_PER_FILE = 16_384;
const FEWEST_FILES = 1_000_000;
/** Apptainer keeps layers and a copy beside what it builds. */
const COPIES = 3;

export type UnpackLimit = {
  /** For messages: as the job or the user named it. */
  image: string;
  folder: string;
  maxBytes: number;
  signal: AbortSignal;
};

/**
 * Ends `work`, by its signal, once what it has written to `folder` is certain to be more than `maxBytes` unpacked: a few
 * kilobytes of an image can fill a disk.
 * @throws ServiceError `image_invalid`
 */
export async function withinLimit(
  limit: UnpackLimit,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const crossed = new AbortController();
  const working = work(AbortSignal.any([limit.signal, crossed.signal]));
  const state = { ended: false };
  const end = () => {
    state.ended = true;
  };
  const ended = working.then(end, end);
  for (let pauseMs = LOOK_MS; !state.ended; ) {
    await Promise.race([ended, Bun.sleep(pauseMs)]);
    const startMs = performance.now();
    for await (const { bytes, files } of diskUsage([limit.folder])) {
      if (state.ended) break;
      const least = Math.max(0, bytes - files * BLOCK_BYTES) / COPIES;
      const tooLarge = least > limit.maxBytes || files / COPIES > mostFiles(limit.maxBytes);
      if (tooLarge) crossed.abort(tooLargeError(limit));
    }
    pauseMs = Math.max(LOOK_MS, (performance.now() - startMs) * REST);
  }
  await working;
}

/** Of an image that is unpacked. @throws ServiceError `image_invalid` */
export function checkSize(limit: UnpackLimit, unpacked: { bytes: number; files: number }): void {
  if (unpacked.bytes <= limit.maxBytes && unpacked.files <= mostFiles(limit.maxBytes)) return;
  throw tooLargeError(limit);
}

function mostFiles(maxBytes: number): number {
  return Math.max(FEWEST_FILES, maxBytes / BYTES_PER_FILE);
}

function tooLargeError({ image, maxBytes }: UnpackLimit): ServiceError {
  const what = `the image ${image} is larger unpacked than image_cache_bytes, ${maxBytes} bytes with ${mostFiles(maxBytes)} files`;
  const mend = "raise image_cache_bytes, or mount large SIFs with image_mount_bytes";
  return new ServiceError("image_invalid", what, { mend });
}
