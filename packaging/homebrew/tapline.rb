# tapline compiled for this Mac, with Metal. Not built by us. After `npm pack` in a clone:
#   brew install --formula packaging/homebrew/tapline.rb
class Tapline < Formula
  desc "Open up a language model while it runs, on your own machine"
  url "file://#{File.expand_path("../../tapline-0.3.0.tgz", __dir__)}"
  version "0.3.0"
  license "MIT"

  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "node"

  def install
    system "npm", "install", *std_npm_args(ignore_scripts: false)
    bin.install_symlink libexec.glob("bin/*")
  end

  service do
    run [opt_bin/"tapline", "serve", "demo"]
    keep_alive crashed: true
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/tapline --version")
    assert_match "Paris", shell_output("#{bin}/tapline demo")
  end
end
