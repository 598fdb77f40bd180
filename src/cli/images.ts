import { ServiceError } from "../errors.ts";
import {
  addImage,
  type ImageView,
  listImages,
  removeImage,
  verifyImages,
} from "../sandbox/images/catalogue.ts";
import { Images } from "../sandbox/images/images.ts";
import { type Command, EXIT } from "./command.ts";
import {
  actionOf,
  parseFlags,
  refuseExtra,
  refuseForeign,
  refuseIdle,
  UsageError,
  wholeNumber,
} from "./flags.ts";
import { imageArgument } from "./image-argument.ts";
import { configFrom } from "./settings.ts";
import { exitOf, onStop, type Stop } from "./signals.ts";
import { formatTable } from "./table.ts";
import { imageSettings } from "./worker-settings.ts";

export const IMAGES_FLAGS = {
  config: { type: "string" },
  "image-cache": { type: "string" },
  "image-cache-bytes": { type: "string" },
  apptainer: { type: "string" },
  json: { type: "boolean" },
  name: { type: "string" },
  all: { type: "boolean" },
  to: { type: "string" },
} as const;

export const imagesCommand: Command = {
  name: "images",
  summary: "list, add, prune, remove and verify unpacked images",
  help: `Usage: rolloutd images list
       rolloutd images add REF [--name NAME]
       rolloutd images prune [--to BYTES | --all]
       rolloutd images remove NAME...
       rolloutd images verify [NAME...]

An image is unpacked once per node, into a cache that its services share; sandboxes start from there. A job's
image and --image of the server are a NAME or a REF; what is not in the cache is unpacked at first use.

  REF     a SIF file, a tar (.gz, .zst, .xz) of a root file system, its folder,
          docker-archive:FILE, oci-archive:FILE, or docker://, oras://, library:// and an address
  list    size, last use, whether a sandbox uses it, and origin
  add     brings REF into the cache, also a folder (which a job would use in place), and names it; without
          --name by its last part. A registry is asked again, so that a newer image takes the name.
  prune   removes images that no sandbox uses, the least recently used first, until the rest takes --to
          BYTES [--image-cache-bytes]; --all removes each. Names stay and bring them back at next use.
  remove  takes a name away, and the files with the last name
  verify  compares each file's kind, mode, size and time with what was unpacked; exit code 1 where one
          differs, and that image is unpacked again at its next use

  --image-cache FOLDER, --image-cache-bytes BYTES, --apptainer PROGRAM, --config FILE
                  as for \`rolloutd serve\`
  --json          JSON instead of a table
`,
  async run(argv) {
    const { values, positionals } = parseFlags(argv, IMAGES_FLAGS);
    const [name, ...targets] = positionals;
    const action = actionOf(name, ACTIONS);
    refuseForeign(values, action, IMAGES_USES);
    const both = { flags: ["to"], when: values.all === true, why: "does not go with --all" };
    refuseIdle(values, [both]);
    const act = ACTIONS[action];
    const config = configFrom({ ...values, name: undefined });
    const images = new Images(imageSettings(config));
    const maxBytes = values.all
      ? 0
      : wholeNumber("--to", values.to ?? `${config.image_cache_bytes}`);
    const json = values.json === true;
    // Ctrl-C ends what is being unpacked, and leaves nothing of it.
    const controller = new AbortController();
    let stopped: Stop | null = null;
    using _listening = onStop((signal) => {
      stopped ??= signal;
      controller.abort(new ServiceError("cancelled", `ended by ${signal}`));
    });
    try {
      const { signal } = controller;
      return await act({ images, targets, name: values.name, maxBytes, json, signal });
    } catch (error) {
      if (stopped === null) throw error;
      process.stderr.write(`rolloutd images: ended by ${stopped}\n`);
      return exitOf(stopped);
    }
  },
};

type Request = {
  images: Images;
  targets: string[];
  name: string | undefined;
  maxBytes: number;
  json: boolean;
  signal: AbortSignal;
};

export const IMAGES_USES = {
  /** How the cache is found and kept is as for `serve`. */
  common: ["config", "image-cache", "image-cache-bytes", "apptainer", "json"],
  actions: {
    list: [],
    add: ["name"],
    prune: ["to", "all"],
    remove: [],
    verify: [],
  },
} as const;

type Action = (request: Request) => Promise<number>;

const ACTIONS: Record<keyof typeof IMAGES_USES.actions, Action> = {
  async list({ images, targets, json }) {
    refuseExtra(targets, 0);
    print(listImages(images.cache), json);
    return EXIT.done;
  },

  async add({ images, targets, name, json, signal }) {
    const [target] = targets;
    if (target === undefined) throw new UsageError("add takes an image");
    refuseExtra(targets, 1);
    const image = imageArgument(target, "REF");
    print([await addImage(images, image, name, signal)], json);
    return EXIT.done;
  },

  async prune({ images, targets, maxBytes, json }) {
    refuseExtra(targets, 0);
    const { digests, bytes, removed } = images.cache.prune(maxBytes);
    await removed;
    if (json) console.log(JSON.stringify({ removed: digests, bytes }));
    else console.log(`removed ${digests.length} images, ${megabytes(bytes)} MB`);
    return EXIT.done;
  },

  async remove({ images, targets, json }) {
    if (targets.length === 0) throw new UsageError("remove takes names of images");
    for (const target of targets) {
      if (removeImage(images.cache, target)) continue;
      process.stderr.write(
        `${target}: a sandbox uses its files; they stay until they are pruned\n`,
      );
    }
    await images.cache.sweep();
    if (json) console.log(JSON.stringify({ removed: targets }));
    return EXIT.done;
  },

  async verify({ images, targets, json, signal }) {
    const { checked, damaged } = await verifyImages(images.cache, targets, signal);
    if (json) {
      const digests = (views: ImageView[]) => views.map(({ digest }) => digest);
      console.log(JSON.stringify({ checked: digests(checked), damaged: digests(damaged) }));
    } else {
      for (const view of damaged) console.log(`damaged: ${view.names.join(", ") || view.digest}`);
      console.log(`${checked.length - damaged.length} of ${checked.length} images are whole`);
    }
    return damaged.length === 0 ? EXIT.done : EXIT.failed;
  },
};

function print(views: ImageView[], json: boolean): void {
  process.stdout.write(json ? `${JSON.stringify(views)}\n` : table(views));
}

function table(views: ImageView[]): string {
  if (views.length === 0) return "no images\n";
  const rows = views.map(({ names, digest, unpacked, bytes, in_use, last_used, origin }) => [
    names.join(", ") || "-",
    digest.slice(0, 12),
    unpacked ? megabytes(bytes) : "-",
    in_use ? "yes" : "no",
    last_used?.slice(0, 16).replace("T", " ") ?? "pruned",
    origin,
  ]);
  return formatTable(["name", "digest", "MB", "in use", "last used", "origin"], rows);
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}
