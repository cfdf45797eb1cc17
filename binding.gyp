# tapline is built by scripts/build (cmake-js), which `npm ci` runs as the package's `install` script. This file is
# for whoever calls node-gyp instead: npm itself where that script is missing, electron-rebuild and the like, or a
# person who types `node-gyp rebuild`. It compiles nothing by itself but runs the same script, which then builds the
# addon or finds it built. node-gyp deletes <root>/build; the CMake trees and the addon lie in <root>/.build.
{
  "targets": [
    {
      "target_name": "tapline",
      "type": "none",
      "actions": [
        {
          "action_name": "build_with_cmake",
          "inputs": [],
          # Never made, so that the action always runs: the script knows best whether anything is to be done.
          "outputs": ["<(PRODUCT_DIR)/always"],
          "action": ["node", "<(module_root_dir)/scripts/build/install.js"],
          "message": "tapline: building with CMake"
        }
      ]
    }
  ]
}
